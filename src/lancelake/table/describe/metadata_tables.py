"""Metadata tables: history, versions, fragments, files, refs and indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.format.index_details import describe
from lancelake.format.transaction import COMMIT_MESSAGE
from lancelake.scan.count import live_rows as fragment_rows
from lancelake.table.describe import operations
from lancelake.table.describe.documents import writer_text
from lancelake.table.describe.files import deletion_path, file_format
from lancelake.table.describe.log import tags_of_versions
from lancelake.table.history import history, summarize
from lancelake.table.index.statistics import current_coverage
from lancelake.table.refs import list_branches, list_tags
from lancelake.table.version_delta import live_rows

Row = dict[str, Any]
_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.map_(pa.string(), pa.string())

_HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("operation", pa.string()),
        ("read_version", pa.int64()),
        ("message", pa.string()),
        ("properties", _TEXTS),
        ("transaction", pa.string()),
        ("writer", pa.string()),
    ]
)
_VERSIONS = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("rows", pa.int64()),
        ("fragments", pa.int64()),
        ("data_files", pa.int64()),
        ("data_bytes", pa.int64()),
        ("deletion_files", pa.int64()),
        ("tags", pa.list_(pa.string())),
    ]
)
_FRAGMENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("rows", pa.int64()),
        ("deleted_rows", pa.int64()),
        ("data_files", pa.int32()),
        ("data_bytes", pa.int64()),
        ("deletion_file", pa.string()),
    ]
)
_FILES = pa.schema(
    [
        ("fragment_id", pa.int64()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("format", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("field_ids", pa.list_(pa.int32())),
        ("base_id", pa.int64()),
    ]
)
_REFS = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("version", pa.int64()),
        ("branch", pa.string()),
    ]
)
_INDICES = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("uuid", pa.string()),
        ("version", pa.int64()),
        ("fragments", pa.list_(pa.int64())),
        ("rows_indexed", pa.int64()),
        ("rows_not_indexed", pa.int64()),
    ]
)


def facts(name: str, snapshot: Snapshot, limit: int | None = None) -> pa.Table:
    """Return the rows of a metadata table of a version, optionally only the first ones."""
    schema, rows = _TABLES[name]
    return pa.Table.from_pylist(list(islice(rows(snapshot), limit)), schema=schema)


def facts_schema(name: str) -> pa.Schema:
    """Return the columns of a metadata table."""
    return _TABLES[name][0]


def _history(at: Snapshot) -> Iterator[Row]:
    for snapshot in history(at.location, newest_first=True):
        if snapshot.version > at.version:
            continue
        done = snapshot.transaction
        properties = {} if done is None else dict(done.properties)
        yield {
            "version": snapshot.version,
            "timestamp": snapshot.manifest.timestamp,
            "operation": None if done is None else operations.name(done.operation),
            "read_version": None if done is None else done.read_version,
            "message": properties.get(COMMIT_MESSAGE),
            "properties": sorted(properties.items()),
            "transaction": None if done is None else done.uuid,
            "writer": writer_text(snapshot.manifest.writer_version),
        }


def _versions(at: Snapshot) -> Iterator[Row]:
    tags = tags_of_versions(at, list_tags(at.main_location))
    for snapshot in history(at.location):
        if snapshot.version > at.version:
            continue
        counts = summarize(snapshot)
        yield {
            "version": snapshot.version,
            "timestamp": snapshot.manifest.timestamp,
            "rows": live_rows(snapshot),
            "fragments": counts.total_fragments,
            "data_files": counts.total_data_files,
            "data_bytes": counts.total_files_size,
            "deletion_files": counts.total_deletion_files,
            "tags": list(tags.get(snapshot.version, ())),
        }


def _fragments(at: Snapshot) -> Iterator[Row]:
    for fragment in at.manifest.fragments:
        yield {
            "id": fragment.id,
            "rows": fragment.live_rows,
            "deleted_rows": fragment.num_deleted_rows,
            "data_files": len(fragment.files),
            "data_bytes": sum(file.file_size_bytes or 0 for file in fragment.files),
            "deletion_file": deletion_path(at, fragment),
        }


def _files(at: Snapshot) -> Iterator[Row]:
    names = {node.id: node.name for node in at.manifest.schema.walk()}
    for fragment in at.manifest.fragments:
        for file in fragment.files:
            yield {
                "fragment_id": fragment.id,
                "path": at.files.data_file(file).path,
                "bytes": file.file_size_bytes,
                "format": file_format(file),
                "columns": [names[i] for i in file.fields if i in names],
                "field_ids": list(file.fields),
                "base_id": file.base_id,
            }


def _refs(at: Snapshot) -> Iterator[Row]:
    main = at.main_location
    for name, tag in list_tags(main).items():
        yield {"name": name, "type": "tag", "version": tag.version, "branch": tag.branch}
    for name, branch in list_branches(main).items():
        yield {
            "name": name,
            "type": "branch",
            "version": branch.parent_version,
            "branch": branch.parent_branch,
        }


def _indices(at: Snapshot) -> Iterator[Row]:
    names = {node.id: node.name for node in at.manifest.schema.walk()}
    if not at.indices:
        return
    places = at.files, at.manifest_at
    rows: dict[int, int] = {f.id: fragment_rows(*places, f) for f in at.manifest.fragments}
    coverage = current_coverage(at)
    for index in at.indices:
        covered = coverage.get(index.uuid, index.fragments())
        known = None if covered is None else sum(rows.get(i, 0) for i in covered)
        kind, _ = describe(index.details)
        yield {
            "name": index.name,
            "type": kind or "Vector",
            "columns": [names[i] for i in index.fields if i in names],
            "uuid": str(index.uuid),
            "version": index.dataset_version,
            "fragments": None if covered is None else sorted(covered),
            "rows_indexed": None if index.is_system else known,
            "rows_not_indexed": None
            if known is None or index.is_system
            else sum(rows.values()) - known,
        }


_TABLES: dict[str, tuple[pa.Schema, Callable[[Snapshot], Iterator[Row]]]] = {
    "history": (_HISTORY, _history),
    "versions": (_VERSIONS, _versions),
    "fragments": (_FRAGMENTS, _fragments),
    "files": (_FILES, _files),
    "refs": (_REFS, _refs),
    "indices": (_INDICES, _indices),
}
