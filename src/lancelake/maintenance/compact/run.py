"""Plan, run and commit a compaction, with retries after conflicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

import numpy as np
from pyroaring import BitMap

from lancelake import events, log
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.fragment_reader import load_deletions, physical_rows
from lancelake.engine.port import Engine, Job, LocalEngine, Progress
from lancelake.errors import ContentionError, RetryableConflictError
from lancelake.format import layout
from lancelake.format.fragment import Fragment, from_bytes
from lancelake.format.ids import FragmentId, Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexFile, IndexMetadata
from lancelake.format.operations import ReserveFragments, Rewrite, RewriteGroup, RewrittenIndex
from lancelake.format.row_address import encode_treemap
from lancelake.index.kind import DROPPED, IdKind, RowMap
from lancelake.index.moved_rows import TYPE_URL, MovedGroup, Moves, RowMoves
from lancelake.index.moved_rows import recorded_moves as earlier_moves
from lancelake.index.row_sets import U64Array
from lancelake.index.stored_segment import StoredIndices, StoredSegment
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import (
    FragmentGroup,
    RewritePlan,
    coverage_by_index,
    covers_part,
    covers_some,
    plan,
    table_settings,
)
from lancelake.maintenance.compact.row_order import SortFragments
from lancelake.scan.live_rows import live_rows
from lancelake.storage.table_files import FileAt
from lancelake.table.operation_record import NO_WORK
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.threads import Pool
from lancelake.txn.fragments import has_hidden_moves

_DETAILS_FILE = "details.binpb"
_MOST_INLINE_BYTES = 204_800
_FILES_AT_ONCE = 16


def recorded_moves(base: Snapshot, groups: Sequence[RewriteGroup], version: int) -> IndexMetadata:
    """Return the index entry that maps the addresses of old rows to those of new ones.

    The rows of each group must have kept their order. `version` is a version before the moves.
    Earlier records are included.
    """
    details = earlier_moves(base) or Moves()
    added = details.inline.versions.add(dataset_version=version)
    added.groups.extend(group_moves(base, groups))
    covered = BitMap(
        f.id for v in details.inline.versions for g in v.groups for f in g.new_fragments
    )
    entry = IndexMetadata(
        uuid=base.location.session.ids.uuid4(),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=Version(version),
        fragment_bitmap=bytes(covered.serialize()),
        details=IndexDetails(type_url=TYPE_URL, value=details.SerializeToString()),
        index_version=0,
        created_at_ms=base.location.session.clock.now_ns() // 1_000_000,
    )
    size_bytes = len(details.inline.SerializeToString())
    return entry if size_bytes <= _MOST_INLINE_BYTES else _outside(base, entry, details)


def group_moves(base: Snapshot, groups: Sequence[RewriteGroup]) -> list[Moves.Group]:
    """Return the moves of the rows of groups; rows must have kept their order."""
    with Pool(_FILES_AT_ONCE) as pool:
        return list(pool.map(lambda group: _group(base, group), groups))


def _outside(base: Snapshot, entry: IndexMetadata, details: Moves) -> IndexMetadata:
    """Store the record in a file, to keep the manifest small."""
    data = details.inline.SerializeToString()
    path = f"{layout.index_dir(entry.uuid)}/{_DETAILS_FILE}"
    base.location.store.put(path, data)
    place = Moves()
    place.external.path, place.external.offset, place.external.size = _DETAILS_FILE, 0, len(data)
    return replace(
        entry,
        details=IndexDetails(type_url=TYPE_URL, value=place.SerializeToString()),
        files=(IndexFile(path=_DETAILS_FILE, size_bytes=len(data)),),
    )


def _group(base: Snapshot, group: RewriteGroup) -> Moves.Group:
    return Moves.Group(
        changed_row_addrs=_addresses(base, group.old_fragments),
        old_fragments=[_digest(base, f) for f in group.old_fragments],
        new_fragments=[_digest(base, f) for f in group.new_fragments],
    )


def _digest(base: Snapshot, fragment: Fragment) -> Moves.FragmentDigest:
    places = base.files, base.manifest_at, fragment
    rows = physical_rows(*places)
    return Moves.FragmentDigest(
        id=fragment.id, physical_rows=rows, num_deleted_rows=rows - live_rows(*places)
    )


def _addresses(base: Snapshot, fragments: Sequence[Fragment]) -> bytes:
    """Encode the addresses of live rows as a Roaring treemap: one bitmap per fragment."""
    live: dict[int, BitMap] = {}
    for fragment in fragments:
        rows = physical_rows(base.files, base.manifest_at, fragment)
        live[fragment.id] = BitMap(range(rows)) - load_deletions(base.files, fragment)
        live[fragment.id].run_optimize()
    return encode_treemap(live)


_SHIFT = np.uint64(32)


def remapped_indices(base: Snapshot, groups: Sequence[RewriteGroup]) -> tuple[RewrittenIndex, ...]:
    """Write every segment that covers fragments of groups and finds rows by address.

    The rows of each group must have kept their order. Kinds that cannot follow rows are left out:
    they do not cover the new fragments until they are brought up to date.
    """
    old = BitMap(f.id for group in groups for f in group.old_fragments)
    segments = [s for s in _of_addresses(base) if s.coverage.fragments & old]
    if not segments:
        return ()
    moved = tuple(map(MovedGroup.of, group_moves(base, groups)))
    moves = RowMoves(compactions=(moved,))
    found = (_remap_segment(base, segment, groups, moves) for segment in segments)
    return tuple(entry for entry in found if entry is not None)


def _of_addresses(base: Snapshot) -> list[StoredSegment]:
    """Return the segments that store addresses, of which a commit knows the coverage."""
    stored = StoredIndices(base)
    # A commit does not read moves that are recorded in a file.
    hides_moves = has_hidden_moves(base.indices)
    found = (stored.segment(entry) for entry in base.indices)
    return [
        segment
        for segment in found
        if segment is not None
        and segment.coverage.stored is IdKind.ADDRESS
        and not (hides_moves and segment.coverage.fragments != _recorded(base, segment))
    ]


def _recorded(base: Snapshot, segment: StoredSegment) -> BitMap:
    existing = BitMap(fragment.id for fragment in base.manifest.fragments)
    return (segment.entry.fragments() or BitMap()) & existing


def _remap_segment(
    base: Snapshot,
    segment: StoredSegment,
    groups: Sequence[RewriteGroup],
    moves: RowMoves,
) -> RewrittenIndex | None:
    unique = base.location.session.ids.uuid4()
    place = FileAt(root=base.location, path=layout.index_dir(unique))
    row_map = _row_map(segment, groups, moves)
    built = segment.remap(row_map, SegmentFolder(place=place))
    if built is None:
        return None
    return RewrittenIndex(
        old_id=segment.entry.uuid,
        new_id=unique,
        new_details=built.details,
        new_index_version=built.index_version,
        new_index_files=built.files,
    )


def _row_map(segment: StoredSegment, groups: Sequence[RewriteGroup], moves: RowMoves) -> RowMap:
    """Return where rows that a segment covers are found after all moves."""
    covered = segment.coverage.fragments
    after = BitMap(covered)
    for group in groups:
        old = BitMap(f.id for f in group.old_fragments)
        if old & covered:
            after = (after - old) | BitMap(f.id for f in group.new_fragments)
    kept = np.array(list(after), dtype=np.uint64)

    def row_map(ids: U64Array) -> U64Array:
        now = moves.row_map(segment.coverage.moves.row_map(ids))
        is_kept = np.isin(now >> _SHIFT, kept)
        return np.where(is_kept, now, np.uint64(DROPPED))

    return row_map


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Fragments as read, and the new fragments with their rows, which have no ids yet.

    `is_sorted` means that the rows were reordered.
    """

    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    is_sorted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Result of committing rewrites: the version, and the rewrites that were committed and skipped.

    `conflict` is the conflict that caused rewrites to be skipped, if any.
    """

    snapshot: Snapshot
    landed: tuple[Rewritten, ...]
    void: tuple[Rewritten, ...] = ()
    conflict: RetryableConflictError | None = None


def land(
    base: Snapshot, done: Sequence[Rewritten], choices: CommitChoices, *, record_moves: bool = False
) -> Landing:
    """Commit all rewrites of fragments of `base` that are still valid, in one version.

    A fragment that was changed since is not replaced: its rewrite is discarded, the others are
    committed. Indices of row addresses are remapped; with `record_moves` the moves are recorded
    instead. An index no longer covers rows that were sorted.
    """
    if not done:
        return Landing(snapshot=base, landed=())
    reserved = _reserved(base, sum(len(rewrite.new) for rewrite in done), choices)
    at, valid = base, _numbered(done, reserved.manifest.max_fragment_id or 0)
    void: list[Rewritten] = []
    conflict: RetryableConflictError | None = None
    while valid:
        groups = tuple(RewriteGroup(old_fragments=r.old, new_fragments=r.new) for r in valid)
        version = max(reserved.version, at.version)
        records = record_moves and not at.manifest.has_stable_row_ids
        moves = _moves(at, valid, version) if records else None
        remapped = () if records else _remap_all(at, valid)
        chosen = replace(choices, fragment_reuse=moves)
        operation = Rewrite(groups=groups, rewritten_indices=remapped)
        transaction = new_transaction(operation, at.version, chosen, ids=at.location.session.ids)
        try:
            made = publish(at, transaction, chosen)
        except RetryableConflictError as error:
            conflict = error
            at = open_snapshot(base.location, Latest(), main=base.main_location)
            keeps = _StillValid(at)
            void += [rewrite for rewrite in valid if not keeps(rewrite)]
            valid = [rewrite for rewrite in valid if keeps(rewrite)]
        else:
            landed = tuple(valid)
            return Landing(snapshot=made, landed=landed, void=tuple(void), conflict=conflict)
    return Landing(snapshot=at, landed=(), void=tuple(void), conflict=conflict)


def _reserved(base: Snapshot, count: int, choices: CommitChoices) -> Snapshot:
    """Reserve ids for new fragments; they are the highest of the version."""
    operation = ReserveFragments(num_fragments=count)
    choices = replace(choices, work=NO_WORK)
    return publish(base, operation, choices)


def _numbered(done: Sequence[Rewritten], highest: int) -> list[Rewritten]:
    following = highest - sum(len(rewrite.new) for rewrite in done) + 1
    found = []
    for rewrite in done:
        new = tuple(
            replace(f, id=FragmentId(n)) for n, f in enumerate(rewrite.new, start=following)
        )
        following += len(new)
        found.append(replace(rewrite, new=new))
    return found


def _moves(at: Snapshot, valid: Sequence[Rewritten], version: int) -> IndexMetadata | None:
    """Record new row addresses if an index needs them and the rows keep their order."""
    coverage = coverage_by_index(at)
    followed = [
        RewriteGroup(old_fragments=rewrite.old, new_fragments=rewrite.new)
        for rewrite in valid
        if not rewrite.is_sorted and covers_some(coverage, rewrite.old)
    ]
    return recorded_moves(at, followed, version) if followed else None


def _remap_all(at: Snapshot, valid: Sequence[Rewritten]) -> tuple[RewrittenIndex, ...]:
    """Remap the indices of rows that keep their order; others cannot be remapped."""
    if any(rewrite.is_sorted for rewrite in valid):
        return ()
    groups = [RewriteGroup(old_fragments=r.old, new_fragments=r.new) for r in valid]
    return remapped_indices(at, groups)


class _StillValid:
    """Decides whether a rewrite is still valid for the contents of a version."""

    def __init__(self, at: Snapshot) -> None:
        self._fragments = {fragment.id: fragment for fragment in at.manifest.fragments}
        self._coverage = coverage_by_index(at)
        self._has_stable_row_ids = at.manifest.has_stable_row_ids

    def __call__(self, rewrite: Rewritten) -> bool:
        is_same = all(_is_same(old, self._fragments.get(old.id)) for old in rewrite.old)
        # Indices do not follow sorted rows by address, whatever they cover.
        is_followed = self._has_stable_row_ids or not rewrite.is_sorted
        return is_same and not (is_followed and covers_part(self._coverage, rewrite.old))


def _is_same(old: Fragment, current: Fragment | None) -> bool:
    """Whether a fragment still has the same rows and values."""
    return current is not None and _content(old) == _content(current)


def _content(fragment: Fragment) -> object:
    deletion = fragment.deletion_file
    return (
        [(f.base_id, f.path, f.fields, f.column_indices) for f in fragment.files],
        None if deletion is None else (deletion.base_id, deletion.read_version, deletion.id),
        fragment.row_ids,
        fragment.created_at_versions,
        fragment.last_updated_at_versions,
    )


_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCounts:
    """Numbers of fragments and files removed and added; files include deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0

    @staticmethod
    def of(rewrites: Iterable[Rewritten]) -> CompactionCounts:
        """Count the fragments and files that rewrites remove and add."""
        every = tuple(rewrites)
        old = [fragment for rewrite in every for fragment in rewrite.old]
        new = [fragment for rewrite in every for fragment in rewrite.new]
        return CompactionCounts(
            fragments_removed=len(old),
            fragments_added=len(new),
            files_removed=_files(old),
            files_added=_files(new),
            bytes_removed=_bytes(old),
            bytes_added=_bytes(new),
        )

    def __add__(self, other: CompactionCounts) -> CompactionCounts:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return CompactionCounts(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The newest version known, and the work done.

    `groups_left` are groups that other writers kept changing.
    """

    snapshot: Snapshot
    metrics: CompactionCounts = field(default_factory=CompactionCounts)
    groups_left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRun:
    """The engine of a compaction, and how it is committed.

    With `groups_per_commit`, that many groups are committed at a time, and are kept if later ones
    fail.
    """

    engine: Engine | None = None
    choices: CommitChoices = DEFAULT_CHOICES
    progress: Progress | None = None
    groups_per_commit: int | None = None


def compact(
    base: Snapshot,
    options: CompactionSettings | None = None,
    run: CompactionRun | None = None,
) -> Compacted:
    """Rewrite fragments worth it and commit; without options, those in the table's config apply.

    Groups that other writers change in the meantime are planned and rewritten again; the others are
    committed.
    """
    events.emit(events.DATASET, event="compacting", uri=base.location.uri)
    running = run or CompactionRun()
    clock = base.location.session.clock
    running = replace(running, choices=running.choices.named("OPTIMIZE", base.location))
    with log.Operation(log.COMPACTION, _SENTENCE, base.location.uri, clock=clock) as operation:
        done = _compacted(base, options or table_settings(base), running)
        if done.metrics.fragments_removed:
            operation.facts |= {"version": done.snapshot.version, "operation": "OPTIMIZE"}
            operation.facts |= {**asdict(done.metrics), "groups_left": done.groups_left}
    return done


_SENTENCE = "compacted {table} into version {version}"


def _compacted(base: Snapshot, how: CompactionSettings, running: CompactionRun) -> Compacted:
    threads = how.num_threads
    engine = running.engine or base.location.session.engine
    engine = engine or (LocalEngine(parallelism=threads) if threads else LocalEngine())
    at, metrics = base, CompactionCounts()
    planned = plan(base, how, parallelism=engine.parallelism)
    for _ in range(_MOST_ROUNDS):
        at, landed, void = _round(at, planned, running, engine)
        metrics += CompactionCounts.of(landed)
        if not void:
            return Compacted(snapshot=at, metrics=metrics)
        at = open_snapshot(base.location, Latest(), main=base.main_location)
        planned = plan(at, _only(void, at, how), parallelism=engine.parallelism)
    if metrics.fragments_removed:
        return Compacted(snapshot=at, metrics=metrics, groups_left=len(planned.groups))
    raise ContentionError(
        f"every fragment was changed by other writers while it was rewritten, {_MOST_ROUNDS} times",
        table=base.location.uri,
    )


def rewritten(group: FragmentGroup, results: Iterable[bytes]) -> Rewritten:
    """Decode the output of the tasks of a group."""
    new = tuple(fragment for result in results for fragment in from_bytes(result))
    is_sorted = any(isinstance(task, SortFragments) for task in group.tasks)
    return Rewritten(old=group.fragments, new=new, is_sorted=is_sorted)


def _round(
    base: Snapshot, planned: RewritePlan, run: CompactionRun, engine: Engine
) -> tuple[Snapshot, list[Rewritten], list[Rewritten]]:
    """Run the tasks and commit; return the version, and the groups committed and not committed."""
    at = base
    landed: list[Rewritten] = []
    void: list[Rewritten] = []
    for group in _grouped(_results(base, planned, run, engine), run.groups_per_commit):
        moves = planned.options.defer_index_remap
        landing = land(base, group, run.choices, record_moves=moves)
        at = landing.snapshot
        landed += landing.landed
        void += landing.void
    return at, landed, void


def _results(
    base: Snapshot, planned: RewritePlan, run: CompactionRun, engine: Engine
) -> Iterator[Rewritten]:
    job = Job(
        description=f"compact {base.location.uri}", tasks=planned.tasks, progress=run.progress
    )
    waiting = deque(planned.groups)
    done: list[bytes] = []
    for result in engine.run(job):
        done.append(result)
        if len(done) == len(waiting[0].tasks):
            yield rewritten(waiting.popleft(), done)
            done = []


def _grouped(done: Iterable[Rewritten], size: int | None) -> Iterator[Sequence[Rewritten]]:
    group: list[Rewritten] = []
    for rewrite in done:
        group.append(rewrite)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _only(
    void: Sequence[Rewritten], at: Snapshot, options: CompactionSettings
) -> CompactionSettings:
    """Return options that exclude all fragments except those whose rewrite was discarded."""
    again = {fragment.id for rewrite in void for fragment in rewrite.old}
    others = frozenset(f.id for f in at.manifest.fragments if f.id not in again)
    return replace(options, excluded_fragment_ids=options.excluded_fragment_ids | others)


def _files(fragments: Sequence[Fragment]) -> int:
    return sum(len(f.files) + (f.deletion_file is not None) for f in fragments)


def _bytes(fragments: Sequence[Fragment]) -> int:
    return sum(file.file_size_bytes or 0 for f in fragments for file in f.files)
