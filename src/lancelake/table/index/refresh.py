"""Refreshing indices: new rows, merged segments, models that no longer fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.codec.readers import temporary_folder
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.kind import SegmentFacts
from lancelake.index.row_sets import EMPTY as NO_IDS
from lancelake.index.stored_segment import StoredIndices, StoredSegment, reading_index
from lancelake.scan.index_search.sources import lacks_rows, uncertain_rows
from lancelake.scan.live_rows import live_rows
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import live_ids, take
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.table import publish
from lancelake.table.config import KEY_INDEX, MAX_ROWS, KeyIndexSettings
from lancelake.table.index import build, request


def merged_segment(
    base: Snapshot,
    name: str,
    target: request.IndexTarget,
    segments: Sequence[StoredSegment],
    new_fragments: BitMap,
    run: build.IndexRun,
    *,
    model: SegmentFacts | None = None,
) -> IndexMetadata:
    """Write one segment of several and of the rows of new fragments, and return its entry.

    Rows that are deleted, and those of fragments that a segment no longer covers, are left out.
    Without segments, a kind that is trained encodes the rows by the model of another segment.
    """
    stored = segments[0].coverage.stored if segments else request.stored_ids(base, target.kind)
    counter = build.row_counter(base, f"index {target.path}", new_fragments, run.progress)
    rows = request.build_input(base, target, new_fragments, stored, on_rows=counter)
    place = build.new_place(base)
    kept = [mergeable_fragments(segment) for segment in segments]
    with ExitStack() as stack:
        sources = [
            (stack.enter_context(_current(s)), live_ids(base, f, s.coverage.stored))
            for s, f in zip(segments, kept, strict=True)
        ]
        if model is not None and not sources:
            sources = [(model, NO_IDS)]
        # Without sources, only the rows can be wrong.
        with reading_index(name) if sources else nullcontext():
            built = target.kind.merge(sources, rows, place.folder)
    covered = BitMap.union(BitMap(new_fragments), *kept)
    entry = place.entry(base, name, target, built, covered)
    return build.with_oldest_version(entry, tuple(segment.entry for segment in segments))


def mergeable_fragments(segment: StoredSegment) -> BitMap:
    """Return the fragments that a segment covers with entries that need not be built again.

    Zones do not follow rows that moved.
    """
    covered = segment.coverage.fragments
    with reading_index(segment.entry.name):
        built = segment.open().fragments()
    return covered if built is None else covered & built


@contextmanager
def _current(segment: StoredSegment) -> Iterator[SegmentFacts]:
    """Open a segment with current row addresses; it is rewritten first if rows have moved."""
    moves = segment.coverage.moves
    if not moves or segment.open().fragments() is not None:
        yield segment.facts
        return
    with temporary_folder("lancelake-index-") as path:
        place = FileAt(root=Location.parse(path), path="segment")
        folder = SegmentFolder(place=place)
        segment.remap(moves.row_map, folder)
        yield replace(segment.facts, folder=folder)


_SAMPLE = 4096
# A fall of the estimated recall by so much costs more than to train again.
_FALL = 0.1


def has_lost_recall(
    base: Snapshot, target: request.IndexTarget, model: SegmentFacts, old: BitMap, new: BitMap
) -> bool:
    """Whether a model finds far fewer of the neighbours of new rows than of those it indexes.

    Both are estimated on samples of rows.
    """
    kind = target.kind
    if not old or not new:
        return False
    now = kind.estimated_recall(model, _sample(base, target, new))
    if now is None:
        return False
    before = kind.estimated_recall(model, _sample(base, target, old))
    return before is not None and now < before - _FALL


def _sample(base: Snapshot, target: request.IndexTarget, fragments: BitMap) -> pa.Array:
    """Return the values of evenly spaced rows of fragments."""
    numbers: list[np.ndarray] = []
    start = 0
    for fragment in base.manifest.fragments:
        count = live_rows(base.files, base.manifest_at, fragment)
        if fragment.id in fragments:
            numbers.append(np.arange(start, start + count, dtype=np.uint64))
        start += count
    every = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.uint64)
    chosen = every[:: max(1, len(every) // _SAMPLE)][:_SAMPLE]
    column = take(base, chosen, ScanRequest(columns=(target.path,))).column(0).combine_chunks()
    values = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    while pa.types.is_struct(values.type):
        # Of a nested column only the path to it is read.
        values = pc.struct_field(values, [0])
    return values.storage if isinstance(values, pa.ExtensionArray) else values


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshOptions:
    """Options of a refresh.

    By default all segments of an index and the new rows become one segment. With
    `num_indices_to_merge` only that many of the last segments are merged; with 0 the new rows
    become a segment of their own. With `large_rows`, an older segment of more rows, and of many
    more than are merged otherwise, is kept. `retrain` rebuilds an index from all rows, which is
    also done when the model of a vector index finds far fewer of the neighbours of new rows than
    of the old ones. When every index becomes one segment, rows that compactions moved are stored
    with their current addresses, and the record of the moves is removed.
    """

    index_names: tuple[str, ...] | None = None
    num_indices_to_merge: int | None = None
    large_rows: int | None = None
    retrain: bool = False

    def __post_init__(self) -> None:
        """Refuse a number of segments that means nothing."""
        if self.num_indices_to_merge is not None and self.num_indices_to_merge < 0:
            raise errors.InvalidRequestError("num_indices_to_merge must not be negative")


Failures = Mapping[str, errors.LanceTableError]
"""Errors about indices that are left as they are, by name."""

_MUCH_LARGER = 2
DEFAULT_OPTIONS = RefreshOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The newest version that is known, the indices that were written, and those left alone."""

    snapshot: Snapshot
    names: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    failed: Failures = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why indices are left as they are."""
        return _reasons(self.failed)

    def raise_failure(self) -> None:
        """Raise the error of the first index that could not be refreshed; it names the others."""
        for name, error in self.failed.items():
            others = ", ".join(repr(other) for other in self.failed if other != name)
            if others:
                error.add_note(f"Other indices could not be refreshed either: {others}.")
            raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The work on indices, those of a kind that is not known, and those that cannot be read."""

    works: tuple[IndexWork, ...]
    skipped: tuple[str, ...] = ()
    failed: Failures = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why indices are left as they are."""
        return _reasons(self.failed)


def _reasons(failed: Failures) -> tuple[str, ...]:
    return tuple(f"index {n!r} is not refreshed: {e.problem}" for n, e in failed.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork:
    """What there is to do for an index: segments to be merged with rows of new fragments."""

    name: str
    target: request.IndexTarget
    merged: tuple[StoredSegment, ...]
    left: tuple[StoredSegment, ...] = ()
    """Segments that stay as they are."""
    new_fragments: BitMap
    rebuild: bool = False
    model: SegmentFacts | None = None
    """Segment whose model encodes new rows, of a kind that is trained."""
    has_old_addresses: bool = False
    """Whether segments store addresses from before a compaction that recorded moves."""

    @property
    def is_due(self) -> bool:
        """Whether anything would change."""
        is_parted = bool(self.new_fragments) or len(self.merged) > 1
        return self.rebuild or is_parted or self.has_old_addresses

    def fragments(self) -> BitMap:
        """Return the fragments of the segment that results."""
        return BitMap.union(self.new_fragments, *map(mergeable_fragments, self.merged))


def refresh_indices(
    base: Snapshot,
    options: RefreshOptions = DEFAULT_OPTIONS,
    run: build.IndexRun = build.DEFAULT_RUN,
) -> Refreshed:
    """Bring indices up to date in one commit; none is made if there is nothing to do.

    An index that cannot be read does not keep others from being refreshed.
    """
    chosen = run.choices.named("OPTIMIZE INDEX", base.location)

    def work(version: Snapshot) -> Refreshed:
        todo = planned(version, options)
        skipped, failed = todo.skipped, dict(todo.failed)
        written: list[tuple[IndexWork, IndexMetadata]] = []
        for each in todo.works:
            if each.is_due:
                with _noted(each.name, failed):
                    entry = _written_if_trained(version, each, run)
                    written += [(each, entry)] if entry is not None else []
        if not written:
            return Refreshed(snapshot=version, skipped=skipped, failed=failed)
        new = tuple(entry for _, entry in written)
        removed = tuple(segment.entry for each, _ in written for segment in each.merged)
        is_complete = not failed and not any(each.left for each in todo.works)
        if is_complete and _forgets_moves(version, options, skipped):
            removed += tuple(i for i in version.indices if i.name == FRAGMENT_REUSE)
        operation = CreateIndex(new_indices=new, removed_indices=removed)
        choices = chosen.within(run.retries)
        made = publish.publish(version, operation, choices)
        if refresh.is_heard:
            refresh.facts |= build.index_facts(made, "OPTIMIZE INDEX", new)
        names = tuple(each.name for each, _ in written)
        return Refreshed(snapshot=made, names=names, skipped=skipped, failed=failed)

    with build.indexing(base) as refresh:
        return publish.retry_on_newest(base, work, run.retries)


@contextmanager
def _noted(name: str, failed: dict[str, errors.LanceTableError]) -> Iterator[None]:
    """Note what is wrong with an index; what is wrong with the table or the store is raised."""
    try:
        yield
    except (errors.ConflictError, errors.StorageUnavailableError):
        raise
    except errors.LanceTableError as error:
        failed[name] = error


def planned(base: Snapshot, options: RefreshOptions = DEFAULT_OPTIONS) -> Planned:
    """Return the work on each index.

    Raise UnsupportedError for an index of a kind that is not known and is asked for by name.
    """
    names = options.index_names
    if names is None:
        names = tuple(dict.fromkeys(i.name for i in base.indices if not i.is_system))
    works: list[IndexWork] = []
    skipped: list[str] = []
    failed: dict[str, errors.LanceTableError] = {}
    entries = {name: request.entries_named(base, name) for name in names}
    for name in names:
        work = None
        with _noted(name, failed):
            work = _work(base, name, entries[name], options)
        if name in failed:
            continue
        if work is not None:
            works.append(work)
        elif options.index_names is None:
            skipped.append(name)
        else:
            problem = f"index {name!r} cannot be updated: its kind is not supported"
            raise errors.UnsupportedError(problem, table=base.location.uri, index=name)
    is_complete = not failed and not any(work.left for work in works)
    if is_complete and _forgets_moves(base, options, skipped):
        works = [replace(work, has_old_addresses=_stores_moved_rows(work)) for work in works]
    return Planned(works=tuple(works), skipped=tuple(skipped), failed=failed)


def _forgets_moves(base: Snapshot, options: RefreshOptions, skipped: Sequence[str]) -> bool:
    """Whether no index needs the record of moved rows once all of them are written again."""
    has_record = any(index.name == FRAGMENT_REUSE for index in base.indices)
    is_all = options.index_names is None and options.num_indices_to_merge is None
    return has_record and is_all and not skipped


def _stores_moved_rows(work: IndexWork) -> bool:
    return any(segment.coverage.moves for segment in work.merged)


def _work(
    base: Snapshot, name: str, entries: Sequence[IndexMetadata], options: RefreshOptions
) -> IndexWork | None:
    segments = StoredIndices(base).segments(name)
    column = request.entry_path(base, entries[0], segments[0].kind) if segments else None
    if len(segments) < len(entries) or column is None:
        return None
    target = request.column_target(base, column, segments[0].kind)
    fragments = BitMap(fragment.id for fragment in base.manifest.fragments)
    covered = [mergeable_fragments(segment) for segment in segments]
    new = fragments - BitMap.union(BitMap(), *covered)
    left = len(segments) - _merged(base, [*covered, new], options)
    model = None
    if target.kind.is_trained:
        model = segments[0].facts
        # A model that was trained on no rows is trained again.
        with reading_index(name):
            left = left if target.kind.can_merge([model]) else 0
        model = model if model.is_trained else None
    is_unfit = any(lacks_rows(base, each.open(), each.coverage) for each in segments)
    if not is_unfit and model is not None and options.num_indices_to_merge is None:
        # Segments that have the model of the first one cover the rows that it fits.
        is_unfit = has_lost_recall(base, target, model, covered[0], new)
    left = 0 if is_unfit or _is_outdated(base, target, segments) else left
    return IndexWork(
        name=name,
        target=target,
        merged=tuple(segments[left:]),
        left=tuple(segments[:left]),
        model=model,
        new_fragments=new,
        rebuild=options.retrain or is_unfit,
    )


def _merged(base: Snapshot, covered: Sequence[BitMap], options: RefreshOptions) -> int:
    """Return how many of the last segments are merged; `covered` ends with the new fragments."""
    count, segments = options.num_indices_to_merge, len(covered) - 1
    if options.retrain or (count is None and options.large_rows is None):
        return segments
    if count is not None:
        return min(count, segments)
    *counts, new = (fragment_rows(base, fragments) for fragments in covered)
    return tiered(counts, new, 0, options.large_rows or 0)


def tiered(counts: Sequence[int], new: int, merged: int, large: int) -> int:
    """Return how many of the last segments are merged with new rows, at least `merged`.

    An older segment is merged with newer ones unless it is large, and has many more rows than these
    together, so that a row is rewritten a few times only, however many segments come.
    """
    total = new + sum(counts[len(counts) - merged :])
    while merged < len(counts):
        older = counts[-merged - 1]
        if older > max(large, _MUCH_LARGER * total):
            break
        merged += 1
        total += older
    return merged


def fragment_rows(base: Snapshot, fragments: BitMap) -> int:
    """Count the live rows of fragments."""
    chosen = (f for f in base.manifest.fragments if f.id in fragments)
    return sum(live_rows(base.files, base.manifest_at, fragment) for fragment in chosen)


def _was_built_apart(work: IndexWork) -> bool:
    facts = [segment.facts for segment in work.merged]
    return bool(facts) and not work.target.kind.can_merge(facts)


def _written_if_trained(
    base: Snapshot, work: IndexWork, run: build.IndexRun
) -> IndexMetadata | None:
    """Write a segment; None for an index that has too few rows to be trained for the first time."""
    try:
        return _written(base, work, run)
    except errors.TooFewRowsError:
        if all(not segment.facts.is_trained for segment in work.merged):
            return None
        raise


def _written(base: Snapshot, work: IndexWork, run: build.IndexRun) -> IndexMetadata:
    # Segments of different versions do not store the same ids of rows.
    versions = {segment.facts.index_version for segment in work.merged}
    kinds = {segment.kind.name for segment in work.merged}
    is_apart = len(versions) > 1 or len(kinds) > 1 or _was_built_apart(work)
    is_apart |= _is_outdated(base, work.target, work.merged)
    # New rows alone are indexed with the parameters of the segments that stay.
    is_new = not work.merged and work.model is None
    is_rebuilt = work.rebuild or is_apart or is_new
    if is_rebuilt or _is_large(base, work, run) or _has_old_values(base, work):
        segments = (*work.merged, *work.left)
        parameters = segments[0].open().parameters() if segments else {}
        return build.rebuilt(base, work.name, work.target, work.fragments(), parameters, run)
    args = base, work.name, work.target, work.merged, work.new_fragments
    return merged_segment(*args, run, model=work.model)


def _has_old_values(base: Snapshot, work: IndexWork) -> bool:
    """Whether a segment has, or may have, values of rows from before an update."""
    return any(_may_have_old_values(base, segment) for segment in work.merged)


def _may_have_old_values(base: Snapshot, segment: StoredSegment) -> bool:
    return bool(uncertain_rows(base, segment.coverage)) and segment.open().has_rows_twice()


def _is_outdated(
    base: Snapshot, target: request.IndexTarget, segments: Sequence[StoredSegment]
) -> bool:
    """Whether segments store other row references than new ones, with which none may be mixed."""
    wanted = request.stored_ids(base, target.kind)
    return any(segment.coverage.stored is not wanted for segment in segments)


def _is_large(base: Snapshot, work: IndexWork, run: build.IndexRun) -> bool:
    """Whether a segment has too many rows to be merged in this process."""
    return run.merged_rows is not None and fragment_rows(base, work.fragments()) > run.merged_rows


_KIND = "BTREE"
_RETRIES = publish.Retries(most=2, timeout_s=30.0)


def update_key_index(
    made: Snapshot,
    settings: KeyIndexSettings,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
) -> None:
    """Add the rows that the key index does not cover to it, as a new segment, and commit it.

    After repeated conflicts the rows are left to the next commit, which adds them.
    """
    if not made.manifest.fragments:
        return
    name = _key_index(made)
    todo = planned(made, RefreshOptions(index_names=(name,), num_indices_to_merge=0))
    for error in todo.failed.values():
        raise error
    (work,) = todo.works
    if not work.new_fragments:
        return
    rows = fragment_rows(made, work.new_fragments)
    if rows > settings.max_rows:
        warnings.warn(
            f"index {name!r} of {made.location.uri} was not updated: {rows} rows are not indexed, "
            f"more than {MAX_ROWS} ({settings.max_rows}); run optimize",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    segments = StoredIndices(made).segments(name)
    counts = [fragment_rows(made, segment.coverage.fragments) for segment in segments]
    merged = merged_segments(counts, rows, settings)
    options = RefreshOptions(index_names=(name,), num_indices_to_merge=merged)
    try:
        done = refresh_indices(made, options, build.IndexRun(choices=choices, retries=_RETRIES))
        done.raise_failure()
    except (errors.ConflictError, errors.IndexNotFoundError):
        return


def merged_segments(counts: Sequence[int], new: int, settings: KeyIndexSettings) -> int:
    """Return how many of the last segments are merged with new rows, given the rows of each."""
    if len(counts) < settings.max_segments:
        return 0
    return tiered(counts, new, max(1, settings.max_segments // 2), 0)


def _key_index(base: Snapshot) -> str:
    """Return the name of the key's BTREE; raise InvalidRequestError if there is none."""
    keys = base.manifest.schema.primary_key()
    paths = [base.manifest.schema.path_of(key.id) or key.name for key in keys]
    if not keys:
        raise _unusable(base, "the table has no primary key")
    if len(keys) > 1:
        raise _unusable(base, f"no {_KIND} indexes a primary key of columns {', '.join(paths)}")
    stored = StoredIndices(base)
    for entry in base.indices:
        segment = stored.segment(entry) if entry.fields == (keys[0].id,) else None
        if segment is not None and segment.kind.name == _KIND:
            return entry.name
    raise _unusable(base, f"the primary key {paths[0]} has no {_KIND} index")


def _unusable(base: Snapshot, problem: str) -> errors.InvalidRequestError:
    return errors.InvalidRequestError(
        f"config {KEY_INDEX} has no effect: {problem}", table=base.location.uri
    )
