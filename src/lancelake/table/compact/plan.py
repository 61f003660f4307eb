"""A version and options -> tasks that rewrite fragments. Opens no data file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lancelake.data.write_task import MAX_BYTES_PER_FILE, WriteTask
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import file_version
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import MAX_ROWS, Fragment
from lancelake.scan.count import live_rows, physical_rows
from lancelake.table.compact.bins import Bin, Candidate, bins
from lancelake.table.compact.coverage import coverage_by_index, ensure_known_coverage
from lancelake.table.compact.options import CompactionOptions
from lancelake.table.compact.task import CompactFragments, Source
from lancelake.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What to rewrite, as seen in one version; the tasks touch different fragments."""

    read_version: int
    options: CompactionOptions
    tasks: tuple[CompactFragments, ...]


def plan(base: Snapshot, options: CompactionOptions) -> CompactionPlan:
    """Choose fragments that are worth rewriting, and group them."""
    _ensure_possible(base, options)
    ensure_known_coverage(base)
    tasks = tuple(_task(base, found, options) for found in bins(_candidates(base), options))
    return CompactionPlan(read_version=base.version, options=options, tasks=tasks)


def task_for(
    base: Snapshot, fragments: Sequence[Fragment], options: CompactionOptions
) -> CompactFragments:
    """Return the task that rewrites these fragments together."""
    _ensure_possible(base, options)
    return _task(base, tuple(_candidate(base, f, frozenset()) for f in fragments), options)


def target_version(base: Snapshot, options: CompactionOptions) -> FileVersion:
    """Return the format of new data files, which is that of the table."""
    own = base.manifest.data_version
    asked = options.data_storage_version
    if asked is not None and file_version.from_name(asked) is not own:
        raise UnsupportedError(
            f"data files of this table have format {own.value}, and files of another format "
            "beside them would lock out readers",
            table=base.location.uri,
            action="Leave out data_storage_version.",
        )
    return own


def _ensure_possible(base: Snapshot, options: CompactionOptions) -> None:
    own = target_version(base, options)
    if own is FileVersion.LEGACY:
        raise UnsupportedError(
            "data files of the legacy format can be read, but not written",
            table=base.location.uri,
            action="Write the rows into another table.",
        )
    names = base.manifest.schema.names
    for ordering in options.sort_by:
        if ordering.column not in names:
            msg = f"column {ordering.column} does not exist; the table has: {', '.join(names)}"
            raise InvalidRequestError(msg, table=base.location.uri, column=ordering.column)


def _candidates(base: Snapshot) -> Iterator[Candidate]:
    coverage = coverage_by_index(base)
    for fragment in base.manifest.fragments:
        covering = (n for n, covered in enumerate(coverage) if fragment.id in covered)
        yield _candidate(base, fragment, frozenset(covering))


def _candidate(base: Snapshot, fragment: Fragment, covered_by: frozenset[int]) -> Candidate:
    places = base.files, base.source.manifest_at, fragment
    return Candidate(
        fragment=fragment,
        physical_rows=physical_rows(*places),
        live_rows=live_rows(*places),
        size_bytes=sum(file.file_size_bytes or 0 for file in fragment.files),
        covered_by=covered_by,
    )


def _task(base: Snapshot, group: Bin, options: CompactionOptions) -> CompactFragments:
    manifest = base.manifest
    source = Source(
        files=base.files,
        manifest_at=base.source.manifest_at,
        version=base.version,
        schema=manifest.schema,
        has_stable_row_ids=manifest.has_stable_row_ids,
    )
    write = WriteTask(
        root=base.location,
        schema=manifest.schema,
        file_version=target_version(base, options),
        max_rows_per_file=MAX_ROWS,
        max_bytes_per_file=options.max_bytes_per_file or MAX_BYTES_PER_FILE,
        allow_external_blobs=True,
        newest_readers_only=True,
    )
    return CompactFragments(
        source=source,
        fragments=tuple(c.fragment for c in group),
        write=write,
        file_rows=_file_rows(group, options),
        batch_rows=options.batch_size or None,
        sort_by=options.sort_by,
        mode=options.compaction_mode,
    )


def _file_rows(group: Bin, options: CompactionOptions) -> tuple[int, ...]:
    """Spread rows evenly over as many files as they fill."""
    rows = sum(c.live_rows for c in group)
    files = rows // max(1, options.target_rows_per_fragment)
    sizes = [s for s in (options.target_bytes_per_fragment, options.max_bytes_per_file) if s]
    if sizes:
        files = max(files, round(sum(c.size_bytes for c in group) / min(sizes)))
    count = max(1, min(files, rows))
    least, more = divmod(rows, count)
    return tuple(least + (n < more) for n in range(count))
