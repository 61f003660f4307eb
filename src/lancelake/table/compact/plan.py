"""Plan a compaction: the fragments to rewrite and their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.arrays.text import InvalidText
from lancelake.data.write_task import MAX_BYTES_PER_FILE, WriteTask
from lancelake.errors import UnsupportedError
from lancelake.format import file_version
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.ids import MAX_ROWS
from lancelake.scan.count import live_rows, physical_rows
from lancelake.table.compact.bins import Bin, CompactionCandidate, bins, file_count
from lancelake.table.compact.coverage import coverage_by_index, ensure_known_coverage
from lancelake.table.compact.key_ranges import ALL, SortRange, ranges
from lancelake.table.compact.key_samples import sampled
from lancelake.table.compact.options import CompactionSettings
from lancelake.table.compact.row_order import asked_order
from lancelake.table.compact.row_stream import spread
from lancelake.table.compact.sorting import SortFragments
from lancelake.table.compact.stored_rows import Source
from lancelake.table.compact.task import CompactFragments

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


@names_table
def plan(base: Snapshot, options: CompactionSettings, *, parallelism: int = 1) -> RewritePlan:
    """Choose fragments worth rewriting, and group them.

    Sorting is split into as many tasks as run in parallel, if there is enough to sort.
    """
    ensure_possible(base, options)
    ensure_known_coverage(base)
    found = bins(_candidates(base, options), options)
    groups = tuple(_group(base, group, options, parallelism) for group in found)
    return RewritePlan(read_version=base.version, options=options, groups=groups)


@names_table
def group_for(
    base: Snapshot, fragments: Sequence[Fragment], options: CompactionSettings
) -> FragmentGroup:
    """Return the group that rewrites these fragments together."""
    ensure_possible(base, options)
    found = tuple(_candidate(base, fragment, frozenset()) for fragment in fragments)
    return _group(base, found, options, 1)


@names_table
def target_version(base: Snapshot, options: CompactionSettings) -> FileVersion:
    """Return the format version of new data files, which is that of the table."""
    own = base.manifest.data_version
    asked = options.data_storage_version
    if asked is not None and file_version.from_name(asked) is not own:
        raise UnsupportedError(
            f"data files of this table have format version {own.value}; files of another "
            "format version would make it unreadable for some readers",
            table=base.location.uri,
            action="Omit data_storage_version.",
        )
    return own


@names_table
def ensure_possible(base: Snapshot, options: CompactionSettings) -> None:
    """Refuse tables that cannot be compacted."""
    own = target_version(base, options)
    if own is FileVersion.LEGACY:
        raise UnsupportedError(
            "data files of the legacy format can be read, but not written",
            table=base.location.uri,
            action="Write the rows to a new table.",
        )
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
