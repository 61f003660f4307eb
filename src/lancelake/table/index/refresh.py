"""Refresh of indices: unindexed rows are added, and segments are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.kind import OneValueSegment, SegmentFacts, TrainedKind
from lancelake.index.stored_segment import StoredIndices, StoredSegment
from lancelake.scan.count import live_rows
from lancelake.scan.index_search.lost_entries import lacks_rows
from lancelake.scan.index_search.updated_rows import uncertain_rows
from lancelake.table.conflict_retry import racing, until_it_lands
from lancelake.table.index.build import DEFAULT_RUN, IndexRun, rebuilt
from lancelake.table.index.merge import mergeable_fragments, merged_segment
from lancelake.table.index.model_fit import has_lost_recall
from lancelake.table.index.request import IndexTarget, column_target, entries_named
from lancelake.table.publish import new_transaction, publish


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
            raise InvalidRequestError("num_indices_to_merge must not be negative")


_MUCH_LARGER = 2
DEFAULT_OPTIONS = RefreshOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The newest version that is known, the indices that were written, and those left alone."""

    snapshot: Snapshot
    names: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork:
    """What there is to do for an index: segments to be merged with rows of new fragments."""

    name: str
    target: IndexTarget
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
    base: Snapshot, options: RefreshOptions = DEFAULT_OPTIONS, run: IndexRun = DEFAULT_RUN
) -> Refreshed:
    """Bring indices up to date in one commit; none is made if there is nothing to do."""

    def work(version: Snapshot) -> Refreshed:
        found, skipped = planned(version, options)
        due = [each for each in found if each.is_due]
        if not due:
            return Refreshed(snapshot=version, skipped=skipped)
        new = tuple(_written(version, each, run) for each in due)
        removed = tuple(segment.entry for each in due for segment in each.merged)
        if not any(each.left for each in found) and _forgets_moves(version, options, skipped):
            removed += tuple(i for i in version.indices if i.name == FRAGMENT_REUSE)
        operation = CreateIndex(new_indices=new, removed_indices=removed)
        choices = racing(run.choices, run.retries)
        made = publish(version, new_transaction(operation, version.version, choices), choices)
        return Refreshed(snapshot=made, names=tuple(each.name for each in due), skipped=skipped)

    return until_it_lands(base, work, run.retries, run.choices.surroundings)


def planned(
    base: Snapshot, options: RefreshOptions = DEFAULT_OPTIONS
) -> tuple[list[IndexWork], tuple[str, ...]]:
    """Return the work on each index, and the names of those of a kind that is not known.

    Raise UnsupportedError for one of these that is asked for by name.
    """
    names = options.index_names
    if names is None:
        names = tuple(dict.fromkeys(i.name for i in base.indices if not i.is_system))
    found: list[IndexWork] = []
    skipped: list[str] = []
    for name in names:
        work = _work(base, name, options)
        if work is not None:
            found.append(work)
        elif options.index_names is None:
            skipped.append(name)
        else:
            problem = f"index {name!r} cannot be updated: its kind is not supported"
            raise UnsupportedError(problem, table=base.location.uri, index=name)
    if not any(work.left for work in found) and _forgets_moves(base, options, skipped):
        found = [replace(work, has_old_addresses=_stores_moved_rows(work)) for work in found]
    return found, tuple(skipped)


def _forgets_moves(base: Snapshot, options: RefreshOptions, skipped: Sequence[str]) -> bool:
    """Whether no index needs the record of moved rows once all of them are written again."""
    has_record = any(index.name == FRAGMENT_REUSE for index in base.indices)
    is_all = options.index_names is None and options.num_indices_to_merge is None
    return has_record and is_all and not skipped


def _stores_moved_rows(work: IndexWork) -> bool:
    return any(segment.coverage.moves for segment in work.merged)


def _work(base: Snapshot, name: str, options: RefreshOptions) -> IndexWork | None:
    entries = entries_named(base, name)
    segments = StoredIndices(base).segments(name)
    column = base.manifest.schema.path_of(entries[0].fields[0])
    if len(segments) < len(entries) or column is None:
        return None
    target = column_target(base, column, segments[0].kind)
    fragments = BitMap(fragment.id for fragment in base.manifest.fragments)
    covered = [mergeable_fragments(segment) for segment in segments]
    new = fragments - BitMap.union(BitMap(), *covered)
    left = len(segments) - _merged(base, [*covered, new], options)
    model = None
    if isinstance(target.kind, TrainedKind):
        model = segments[0].facts
        # A model that was trained on no rows is trained again.
        left = left if target.kind.has_one_model([model]) else 0
    is_unfit = any(lacks_rows(base, each.open(), each.coverage) for each in segments)
    if not is_unfit and model is not None and options.num_indices_to_merge is None:
        # Segments that have the model of the first one cover the rows that it fits.
        is_unfit = has_lost_recall(base, target, model, covered[0], new)
    left = 0 if is_unfit else left
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


def _was_trained_apart(work: IndexWork) -> bool:
    kind, facts = work.target.kind, [segment.facts for segment in work.merged]
    return isinstance(kind, TrainedKind) and bool(facts) and not kind.has_one_model(facts)


def _written(base: Snapshot, work: IndexWork, run: IndexRun) -> IndexMetadata:
    # Segments of different versions do not store the same ids of rows.
    versions = {segment.facts.index_version for segment in work.merged}
    kinds = {segment.kind.name for segment in work.merged}
    is_apart = len(versions) > 1 or len(kinds) > 1 or _was_trained_apart(work)
    # New rows alone are indexed with the parameters of the segments that stay.
    is_new = not work.merged and work.model is None
    is_rebuilt = work.rebuild or is_apart or is_new
    if is_rebuilt or _is_large(base, work, run) or _has_old_values(base, work):
        segments = (*work.merged, *work.left)
        parameters = segments[0].open().parameters() if segments else {}
        return rebuilt(base, work.name, work.target, work.fragments(), parameters, run)
    args = base, work.name, work.target, work.merged, work.new_fragments
    return merged_segment(*args, run, model=work.model)


def _has_old_values(base: Snapshot, work: IndexWork) -> bool:
    """Whether a segment has values of rows from before an update."""
    opened = ((segment.open(), segment.coverage) for segment in work.merged)
    return any(
        isinstance(segment, OneValueSegment)
        and bool(uncertain_rows(base, segment, coverage))
        and segment.has_rows_twice()
        for segment, coverage in opened
    )


def _is_large(base: Snapshot, work: IndexWork, run: IndexRun) -> bool:
    """Whether a segment has too many rows to be merged in this process."""
    return run.merged_rows is not None and fragment_rows(base, work.fragments()) > run.merged_rows
