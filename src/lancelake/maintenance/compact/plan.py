"""Plan of a compaction: which fragments are rewritten together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import InvalidText
from lancelake.data.column_file import MAX_BYTES_PER_FILE, WriteTask
from lancelake.data.fragment_reader import physical_rows
from lancelake.data.schema_check import ensure_writable
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.fragment import FileVersion, Fragment, version_from_name
from lancelake.format.ids import MAX_ROWS
from lancelake.format.schema import join_list, split_list, split_path
from lancelake.index.moved_rows import with_inline_moves
from lancelake.maintenance.compact.options import CompactionMode, CompactionSettings, from_config
from lancelake.maintenance.compact.row_order import (
    ALL,
    SortFragments,
    SortRange,
    asked_order,
    ranges,
    sampled,
)
from lancelake.maintenance.compact.stored_rows import Source, spread
from lancelake.maintenance.compact.task import CompactFragments
from lancelake.scan.live_rows import live_rows
from lancelake.scan.request import Ordering
from lancelake.txn.fragments import follow_moves

# A large fragment is not rewritten until its neighbours have one row for this many of its own.
_GROWTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCandidate:
    """A fragment, and the facts that decide whether it is rewritten.

    `covered_by` names the indices that cover it: indexed and unindexed rows must not be merged into
    one fragment.
    """

    fragment: Fragment
    physical_rows: int
    live_rows: int
    size_bytes: int
    covered_by: frozenset[int] = frozenset()

    @property
    def deleted_share(self) -> float:
        """Fraction of the rows that is deleted."""
        return 1 - self.live_rows / self.physical_rows if self.physical_rows else 0.0


Bin = tuple[CompactionCandidate, ...]


def file_count(part: Bin, options: CompactionSettings) -> int:
    """Return the number of files for the rows of a group."""
    rows = sum(c.live_rows for c in part)
    size_bytes = sum(c.size_bytes for c in part)
    files = rows // max(1, options.target_rows_per_fragment)
    if options.target_bytes_per_fragment:
        files = max(files, round(size_bytes / options.target_bytes_per_fragment))
    if options.file_bytes:
        files = max(files, math.ceil(size_bytes / options.file_bytes))
    return max(1, min(files, rows))


def bins(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> list[Bin]:
    """Group adjacent fragments worth rewriting, each group about the size of one fragment.

    If rows are sorted, fragments covered by the same indices form a group.
    """
    if options.orders_rows:
        return _sortable(candidates, options)
    found = [
        part
        for run in _runs(candidates, options)
        for merged in _without_settled(run, options)
        for part in _split(merged, options)
        if not _is_pointless(part, options)
    ]
    return _within_limits(found, options)


def _runs(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> Iterator[Bin]:
    """Yield runs of adjacent fragments covered by the same indices."""
    run: list[CompactionCandidate] = []
    for candidate in candidates:
        is_taken = _is_taken(candidate, options)
        if run and (not is_taken or candidate.covered_by != run[0].covered_by):
            yield tuple(run)
            run = []
        if is_taken:
            run.append(candidate)
    if run:
        yield tuple(run)


def _is_taken(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    if candidate.fragment.id in options.excluded_fragment_ids:
        return False
    if _sheds_rows(candidate, options) or _is_oversized(candidate, options):
        return True
    is_short = candidate.physical_rows < options.target_rows_per_fragment
    return is_short and candidate.size_bytes < options.settled_at_bytes


def _sheds_rows(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    is_over = candidate.deleted_share > options.materialize_deletions_threshold
    return options.materialize_deletions and is_over


def _is_oversized(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    """Whether a fragment is split into several that are within the limit of a file's size."""
    most = options.file_bytes
    return most is not None and candidate.size_bytes >= 2 * most and candidate.live_rows > 1


def _is_pointless(part: Bin, options: CompactionSettings) -> bool:
    """Whether fragments would be copied without any gain."""
    if any(_sheds_rows(c, options) or _is_oversized(c, options) for c in part):
        return False
    return file_count(part, options) >= len(part)


def _without_settled(run: Bin, options: CompactionSettings) -> Iterator[Bin]:
    """Exclude a fragment that is much larger than all fragments it would be merged with."""
    largest = max(range(len(run)), key=lambda i: run[i].live_rows)
    candidate = run[largest]
    others = sum(c.live_rows for c in run) - candidate.live_rows
    if (
        len(run) == 1
        or candidate.size_bytes < options.settled_bytes
        or others * _GROWTH >= candidate.live_rows
        or _sheds_rows(candidate, options)
    ):
        yield run
        return
    for part in (run[:largest], run[largest + 1 :]):
        if part:
            yield from _without_settled(part, options)


def _split(run: Bin, options: CompactionSettings) -> Iterator[Bin]:
    """Split a run into parts that each fill a fragment; the last one takes the remainder."""
    left_rows = sum(c.live_rows for c in run)
    left_bytes = sum(c.size_bytes for c in run)
    start = rows = size_bytes = 0
    for end, candidate in enumerate(run, start=1):
        rows += candidate.live_rows
        size_bytes += candidate.size_bytes
        rest = left_rows - rows, left_bytes - size_bytes
        if _is_full(rows, size_bytes, options) and _is_full(*rest, options):
            yield run[start:end]
            left_rows, left_bytes = rest
            start, rows, size_bytes = end, 0, 0
    yield run[start:]


def _is_full(rows: int, size_bytes: int, options: CompactionSettings) -> bool:
    return rows >= options.target_rows_per_fragment or size_bytes >= options.settled_at_bytes


def _sortable(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> list[Bin]:
    """Take the first fragments within the limit of what one run may read."""
    excluded = options.excluded_fragment_ids
    every = ((c,) for c in candidates if c.fragment.id not in excluded)
    groups: dict[frozenset[int], list[CompactionCandidate]] = {}
    for (candidate,) in _within_limits(every, options):
        groups.setdefault(candidate.covered_by, []).append(candidate)
    return [tuple(group) for group in groups.values()]


def _within_limits(found: Iterable[Bin], options: CompactionSettings) -> list[Bin]:
    """Take the first bins whose sources are within the limit of what one run may read."""
    fragments = rows = size_bytes = 0

    def fits(part: Bin) -> bool:
        nonlocal fragments, rows, size_bytes
        fragments += len(part)
        rows += sum(c.live_rows for c in part)
        size_bytes += sum(c.size_bytes for c in part)
        return (
            fragments <= (options.max_source_fragments or fragments)
            and rows <= (options.max_source_rows or rows)
            and size_bytes <= (options.max_source_bytes or size_bytes)
        )

    return list(takewhile(fits, found))


def coverage_by_index(base: Snapshot) -> list[BitMap]:
    """Return the fragments that each index covers, considering earlier compactions."""
    indices = follow_moves(with_inline_moves(base))
    return [i.fragments() or BitMap() for i in indices if not i.is_system]


def covers_some(coverage: Iterable[BitMap], fragments: Sequence[Fragment]) -> bool:
    """Whether an index covers any of these fragments."""
    moved = BitMap(f.id for f in fragments)
    return any(covered & moved for covered in coverage)


def covers_part(coverage: Iterable[BitMap], fragments: Sequence[Fragment]) -> bool:
    """Whether an index covers some but not all of these fragments."""
    moved = BitMap(f.id for f in fragments)
    return any(covered & moved and not moved <= covered for covered in coverage)


def ensure_known_coverage(base: Snapshot) -> None:
    """Refuse to move rows of an index that does not record which fragments it covers."""
    for index in base.indices:
        if not index.is_system and index.fragments() is None:
            raise UnsupportedError(
                f"index {index.name!r} does not record which fragments it covers",
                table=base.location.uri,
                action="Rebuild the index, or drop it.",
                index=index.name,
            )


RewriteTask = CompactFragments | SortFragments

# Less than this is not worth its own task, since each task reads the keys of all fragments.
_RANGE_BYTES = 64 << 20
_RANGE_SLACK = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentGroup:
    """Fragments that are replaced together, and the tasks that write their replacement.

    The fragments returned by the tasks are concatenated in task order.
    """

    fragments: tuple[Fragment, ...]
    tasks: tuple[RewriteTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePlan:
    """Groups of fragments to rewrite in one version; groups do not overlap."""

    read_version: int
    options: CompactionSettings
    groups: tuple[FragmentGroup, ...]

    @property
    def tasks(self) -> tuple[RewriteTask, ...]:
        """The tasks of all groups."""
        return tuple(task for group in self.groups for task in group.tasks)


def plan(base: Snapshot, options: CompactionSettings, *, parallelism: int = 1) -> RewritePlan:
    """Choose fragments worth rewriting, and group them.

    Sorting is split into as many tasks as run in parallel, if there is enough to sort.
    """
    ensure_possible(base, options)
    ensure_known_coverage(base)
    found = bins(_candidates(base, options), options)
    groups = tuple(_group(base, group, options, parallelism) for group in found)
    return RewritePlan(read_version=base.version, options=options, groups=groups)


def group_for(
    base: Snapshot, fragments: Sequence[Fragment], options: CompactionSettings
) -> FragmentGroup:
    """Return the group that rewrites these fragments together."""
    ensure_possible(base, options)
    found = tuple(_candidate(base, fragment, frozenset()) for fragment in fragments)
    return _group(base, found, options, 1)


def target_version(base: Snapshot, options: CompactionSettings) -> FileVersion:
    """Return the format version of new data files, which is that of the table."""
    own = base.manifest.data_version
    asked = options.data_storage_version
    if asked is not None and version_from_name(asked) is not own:
        raise UnsupportedError(
            f"data files of this table have format version {own.value}; files of another "
            "format version would make it unreadable for some readers",
            table=base.location.uri,
            action="Omit data_storage_version.",
        )
    return own


def ensure_possible(base: Snapshot, options: CompactionSettings) -> None:
    """Refuse tables that cannot be compacted."""
    ensure_writable(target_version(base, options))
    asked_order(base.manifest.schema, options)


def _candidates(base: Snapshot, options: CompactionSettings) -> Iterator[CompactionCandidate]:
    coverage = coverage_by_index(base)
    if options.orders_rows and not base.manifest.has_stable_row_ids:
        # Indices by row address lose all of their rows in either case.
        coverage = []
    for fragment in base.manifest.fragments:
        covering = (n for n, covered in enumerate(coverage) if fragment.id in covered)
        yield _candidate(base, fragment, frozenset(covering))


def _candidate(
    base: Snapshot, fragment: Fragment, covered_by: frozenset[int]
) -> CompactionCandidate:
    places = base.files, base.manifest_at, fragment
    return CompactionCandidate(
        fragment=fragment,
        physical_rows=physical_rows(*places),
        live_rows=live_rows(*places),
        size_bytes=sum(file.file_size_bytes or 0 for file in fragment.files),
        covered_by=covered_by,
    )


def _group(
    base: Snapshot, group: Bin, options: CompactionSettings, parallelism: int
) -> FragmentGroup:
    fragments = tuple(candidate.fragment for candidate in group)
    files = file_count(group, options)
    if options.orders_rows:
        # Ranges have about the same number of rows, and none may be too small for a file.
        most = min(parallelism, int(files / _RANGE_SLACK))
        tasks = _sorting(base, group, options, most)
        return FragmentGroup(fragments=fragments, tasks=tasks)
    rows = sum(candidate.live_rows for candidate in group)
    task = CompactFragments(
        source=_source(base),
        fragments=fragments,
        write=_write(base, options),
        file_rows=spread(rows, files),
        batch_rows=options.batch_size or None,
        mode=options.compaction_mode,
    )
    return FragmentGroup(fragments=fragments, tasks=(task,))


def _sorting(
    base: Snapshot, group: Bin, options: CompactionSettings, most: int
) -> tuple[SortFragments, ...]:
    """Return a task for each key range."""
    source = _source(base)
    fragments = tuple(candidate.fragment for candidate in group)
    size_bytes = sum(candidate.size_bytes for candidate in group)
    rows = sum(candidate.live_rows for candidate in group)
    order = asked_order(source.schema, options)
    count = min(most, -(-size_bytes // _RANGE_BYTES))
    found: tuple[SortRange, ...] = (ALL,)
    if options.z_order_by or count > 1:
        along_curve = bool(options.z_order_by)
        order, keys = sampled(source, fragments, order, along_curve=along_curve)
        found = ranges(keys, order.directions, count)
    return tuple(
        SortFragments(
            source=source,
            fragments=fragments,
            write=_write(base, options),
            order=order,
            rows_per_file=rows // file_count(group, options),
            range=part,
            batch_rows=options.batch_size or None,
        )
        for part in found
    )


def _source(base: Snapshot) -> Source:
    manifest = base.manifest
    return Source(
        files=base.files,
        manifest_at=base.manifest_at,
        version=base.version,
        schema=manifest.schema,
        has_stable_row_ids=manifest.has_stable_row_ids,
    )


def _write(base: Snapshot, options: CompactionSettings) -> WriteTask:
    return WriteTask(
        root=base.location,
        schema=base.manifest.schema,
        file_version=target_version(base, options),
        max_rows_per_file=MAX_ROWS,
        max_bytes_per_file=options.max_bytes_per_file or MAX_BYTES_PER_FILE,
        allow_external_blobs=True,
        text=InvalidText.TRUST,
        newest_readers_only=True,
    )


CLUSTER_BY = "lancelake.cluster_by"
"""Config key of the clustering columns: their paths, separated by commas."""


def cluster_columns(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the clustering columns; empty without any."""
    return split_list(config.get(CLUSTER_BY, ""))


def cluster_text(paths: Sequence[Sequence[str]]) -> str | None:
    """Return the config value for these columns; None if there are none."""
    return join_list(paths) or None


def cluster_paths(config: Mapping[str, str]) -> list[list[str]]:
    """Return the clustering columns as lists of names."""
    return [list(split_path(path)) for path in cluster_columns(config)]


def ensure_not_clustering(base: Snapshot, paths: Iterable[str]) -> None:
    """Refuse to drop or rename a clustering column, or a struct that contains one."""
    changed = [split_path(path) for path in paths]
    for column in cluster_columns(base.manifest.config):
        names = split_path(column)
        if any(names[: len(path)] == path for path in changed):
            raise InvalidRequestError(
                f"{column} is a clustering column of the table",
                table=base.location.uri,
                version=base.version,
                column=column,
                action="Change the clustering columns first: ALTER TABLE ... CLUSTER BY NONE.",
            )


def table_settings(base: Snapshot, /, **given: Any) -> CompactionSettings:  # fields of the settings
    """Return given settings, completed by the table's config; None counts as not given."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return clustered(base, replace(from_config(base.manifest.config), **chosen))


def clustered(base: Snapshot, settings: CompactionSettings) -> CompactionSettings:
    """Order the rows of the fragments that a compaction rewrites by the clustering columns.

    One column is sorted, several are clustered along a Z-order curve. Fragments that are not worth
    rewriting are left unchanged, so that the cost depends on the new rows, not on the table. Pages
    that are copied keep their rows in order.
    """
    columns = cluster_columns(base.manifest.config)
    is_copied = settings.compaction_mode is CompactionMode.FORCE_BINARY_COPY
    if not columns or settings.orders_rows or is_copied:
        return settings
    chosen = {fragment.id for group in plan(base, settings).groups for fragment in group.fragments}
    others = frozenset(f.id for f in base.manifest.fragments if f.id not in chosen)
    excluded = settings.excluded_fragment_ids | others
    if len(columns) == 1:
        keys = (Ordering(column=columns[0]),)
        return replace(settings, excluded_fragment_ids=excluded, sort_by=keys)
    return replace(settings, excluded_fragment_ids=excluded, z_order_by=columns)
