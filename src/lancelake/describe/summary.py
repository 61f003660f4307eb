"""Summary of a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.describe.documents import Json, document, field_document, flag_names, writer_text
from lancelake.errors import LanceTableError
from lancelake.format import index_meta
from lancelake.format.fragment import FileVersion
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.layout import ManifestNaming
from lancelake.format.manifest import unknown_writer_flags
from lancelake.format.refs import Branch, Tag
from lancelake.maintenance.check.finding import FileSizes
from lancelake.maintenance.check.refs import CheckedLine, CheckedRefs
from lancelake.storage.table_files import FileAt
from lancelake.table.history import VersionSummary, summarize
from lancelake.txn.fragments import follow_moves

_SMALL_FRAGMENT_ROWS = 100_000
_MANY_SMALL_FRAGMENTS = 100
_MANY_DELETED = 0.1
_MANY_VERSIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A problem, and the recommended action.

    `command` are the words of the command that solves it, before the table; None if there is none.
    """

    code: str
    message: str
    advice: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSummary:
    """An index with all its segments; None where its entries do not record a value."""

    name: str
    kind: str
    columns: tuple[str, ...]
    segments: int
    is_system: bool
    size_bytes: int | None
    indexed_rows: int | None
    unindexed_rows: int | None
    unindexed_fragments: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """A version with its refs and history; `rows` is None if only data files record it."""

    uri: str
    version: int
    branch: str | None
    latest_version: int
    versions: int
    counts: VersionSummary
    rows: int | None
    deleted_rows: int | None
    data_bytes: int
    unsized_files: int
    indices: tuple[IndexSummary, ...]
    tags: tuple[tuple[str, Tag], ...]
    branches: tuple[tuple[str, Branch], ...]
    warnings: tuple[Advice, ...]


def describe(snapshot: Snapshot) -> TableSummary:
    """Collect facts from the manifest, the list of versions, tags and branches."""
    return _Description(snapshot).summary()


def index_coverage(snapshot: Snapshot) -> list[tuple[IndexSummary, BitMap | None]]:
    """Return the indices with the fragments they cover; None if an index does not record them."""
    described = _Description(snapshot)
    return [(described.index(name, parts), _coverage(parts)) for name, parts in described.segments]


def table_command(words: str, snapshot: Snapshot) -> str:
    """Return a command for the line of a version, ready for a shell."""
    line = ["lancelake", *words.split(), snapshot.main_location.uri]
    if snapshot.branch is not None:
        line += ["--branch", snapshot.branch]
    return shlex.join(line)


def summary_document(snapshot: Snapshot, summary: TableSummary, rows: int) -> Json:
    """Return a summary as a JSON document."""
    manifest = snapshot.manifest
    counts = summary.counts
    return {
        "uri": summary.uri,
        "version": summary.version,
        "branch": summary.branch,
        "latest_version": summary.latest_version,
        "versions": summary.versions,
        "written_at": manifest.timestamp.isoformat() if manifest.timestamp else None,
        "writer": writer_text(manifest.writer_version),
        "rows": rows,
        "deleted_rows": summary.deleted_rows,
        "data_bytes": summary.data_bytes,
        "unsized_files": summary.unsized_files,
        "fragments": counts.total_fragments,
        "data_files": counts.total_data_files,
        "deletion_files": counts.total_deletion_files,
        "data_file_version": manifest.data_version.value,
        "stable_row_ids": manifest.has_stable_row_ids,
        "reader_flags": flag_names(manifest.reader_feature_flags),
        "writer_flags": flag_names(manifest.writer_feature_flags),
        "fields": [field_document(field) for field in manifest.schema.fields],
        "indices": document(summary.indices),
        "tags": {n: {"branch": t.branch, "version": t.version} for n, t in summary.tags},
        "branches": {
            n: {"parent_branch": b.parent_branch, "parent_version": b.parent_version}
            for n, b in summary.branches
        },
        "config": document(manifest.config),
        "table_metadata": document(manifest.table_metadata),
        "schema_metadata": document(manifest.schema.metadata),
        "base_paths": document(manifest.base_paths),
        "warnings": document(summary.warnings),
    }


class _Description:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._fragments = snapshot.manifest.fragments

    def summary(self) -> TableSummary:
        """Assemble the summary."""
        snapshot = self._snapshot
        data_bytes, unsized_files = self._data_bytes
        return TableSummary(
            uri=snapshot.location.uri,
            version=snapshot.version,
            branch=snapshot.branch,
            latest_version=max((n.version for n in self._line.newest_first), default=0),
            versions=len(self._line.newest_first),
            counts=self._counts,
            rows=_sum(f.live_rows for f in self._fragments),
            deleted_rows=_sum(f.num_deleted_rows for f in self._fragments),
            data_bytes=data_bytes,
            unsized_files=unsized_files,
            indices=self._indices,
            tags=tuple(self._refs.tags.items()),
            branches=tuple(self._refs.branches.items()),
            warnings=tuple(self._warnings()),
        )

    @cached_property
    def _counts(self) -> VersionSummary:
        return summarize(self._snapshot)

    @cached_property
    def _line(self) -> CheckedLine:
        return CheckedLine.load(self._snapshot.location, self._snapshot.branch)

    @cached_property
    def _refs(self) -> CheckedRefs:
        return CheckedRefs.load(self._snapshot.main_location)

    @cached_property
    def _data_bytes(self) -> tuple[int, int]:
        """Bytes of all data files of known size, and the number of other files."""
        total = unknown = 0
        ask: list[FileAt] = []
        for file in (file for fragment in self._fragments for file in fragment.files):
            if file.file_size_bytes is not None and file.version is not FileVersion.LEGACY:
                total += file.file_size_bytes
            else:
                ask.append(self._snapshot.files.data_file(file))
        sizes = FileSizes()
        sizes.load(ask)
        for size in map(sizes.of, ask):
            if isinstance(size, int):
                total += size
            else:
                unknown += 1
        return total, unknown

    @cached_property
    def _indices(self) -> tuple[IndexSummary, ...]:
        return tuple(self.index(name, parts) for name, parts in self.segments)

    @cached_property
    def segments(self) -> list[tuple[str, list[IndexMetadata]]]:
        """Segments by the name of their index."""
        by_name: dict[str, list[IndexMetadata]] = {}
        for index in _follow_moves(self._snapshot.indices):
            by_name.setdefault(index.name, []).append(index)
        return list(by_name.items())

    def index(self, name: str, parts: list[IndexMetadata]) -> IndexSummary:
        """Summarize an index."""
        schema = self._snapshot.manifest.schema
        columns = (schema.path_of(field) or f"field {field}" for field in parts[0].fields)
        sizes = [sum(f.size_bytes for f in part.files) if part.files else None for part in parts]
        coverage = _coverage(parts)
        missing = [f for f in self._fragments if coverage is not None and f.id not in coverage]
        total = _sum(f.live_rows for f in self._fragments)
        uncovered = None if coverage is None else _sum(f.live_rows for f in missing)
        return IndexSummary(
            name=name,
            kind=_kind(parts[0]),
            columns=tuple(columns),
            segments=len(parts),
            is_system=parts[0].is_system,
            size_bytes=_sum(sizes),
            indexed_rows=None if total is None or uncovered is None else total - uncovered,
            unindexed_rows=uncovered,
            unindexed_fragments=None if coverage is None else len(missing),
        )

    def _warnings(self) -> Iterator[Advice]:
        yield from self._layout_warnings()
        yield from self._index_warnings()
        manifest = self._snapshot.manifest
        if unknown := unknown_writer_flags(manifest.writer_feature_flags):
            yield Advice(
                code="read-only",
                message="The table uses features that this release does not support (flags "
                f"{unknown:#x}).",
                advice="It can be read. Write to it with the release that created it.",
            )
        if len({name.naming for name in self._line.newest_first}) > 1:
            names = " and ".join(scheme.value for scheme in ManifestNaming)
            yield Advice(
                code="naming-mixed",
                message=f"Manifests follow two naming schemes ({names}).",
                advice="Finish the migration of manifest paths; some readers refuse the table.",
            )
        for finding in self._refs.damage:
            message = f"{finding.path} cannot be used: {finding.message}."
            yield Advice(code=finding.code, message=message, advice=finding.hint or "")

    def _layout_warnings(self) -> Iterator[Advice]:
        small = sum((f.physical_rows or 0) < _SMALL_FRAGMENT_ROWS for f in self._fragments)
        if small >= _MANY_SMALL_FRAGMENTS:
            yield Advice(
                code="small-fragments",
                message=f"{small:,} fragments have fewer than {_SMALL_FRAGMENT_ROWS:,} rows.",
                advice="Run `lancelake compact` or `lancelake optimize`: scans open fewer files.",
                command="compact",
            )
        counts = self._counts
        physical, deleted = counts.total_data_file_rows, counts.total_deletion_file_rows
        if physical and deleted > physical * _MANY_DELETED:
            yield Advice(
                code="many-deletions",
                message=f"{deleted / physical:.0%} of the stored rows are deleted.",
                advice="Run `lancelake compact` or `lancelake optimize`: scans read less.",
                command="compact",
            )
        versions = len(self._line.newest_first)
        if versions > _MANY_VERSIONS:
            yield Advice(
                code="many-versions",
                message=f"The table has {versions:,} versions.",
                advice="Run `lancelake cleanup` or `lancelake optimize` to free space.",
                command="cleanup",
            )

    def _index_warnings(self) -> Iterator[Advice]:
        if any(index.name == FRAGMENT_REUSE for index in self._indices):
            yield Advice(
                code="deferred-index-work",
                message="Indices still refer to row addresses from before a compaction.",
                advice="Run `lancelake index refresh`: until then every query maps row addresses.",
                command="index refresh",
            )
        for index in self._indices:
            if index.unindexed_fragments and not index.is_system:
                rows = f" with {index.unindexed_rows:,} rows" if index.unindexed_rows else ""
                count = index.unindexed_fragments
                yield Advice(
                    code="unindexed-fragments",
                    message=f"Index {index.name} does not cover {count:,} "
                    f"{'fragment' if count == 1 else 'fragments'}{rows}.",
                    advice="Run `lancelake index refresh`: until then queries scan these rows.",
                    command="index refresh",
                )


def _follow_moves(indices: tuple[IndexMetadata, ...]) -> tuple[IndexMetadata, ...]:
    """Return entries with the coverage that recorded moves give them, where these are readable."""
    try:
        return follow_moves(indices)
    except LanceTableError:
        return indices


def _coverage(parts: list[IndexMetadata]) -> BitMap | None:
    """Fragments that the segments cover together; None if one does not record it."""
    covered = BitMap()
    for part in parts:
        try:
            fragments = part.fragments()
        except LanceTableError:
            return None
        if fragments is None:
            return None
        covered |= fragments
    return covered


def _kind(index: IndexMetadata) -> str:
    try:
        kind, _ = index_meta.describe(index.details)
    except LanceTableError:
        return index_meta.UNKNOWN
    return kind or "Vector"


def _sum(counts: Iterator[int | None] | list[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
