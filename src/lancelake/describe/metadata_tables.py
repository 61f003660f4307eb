"""Metadata of a table: fragments with their files, and tables of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, list_branches, list_tags
from lancelake.describe.documents import Json, writer_text
from lancelake.describe.log import tags_of_versions
from lancelake.describe.summary import index_coverage
from lancelake.errors import NotFoundError
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import describe
from lancelake.scan.live_rows import live_rows as fragment_rows
from lancelake.table.history import history, summarize, version_rows
from lancelake.table.index.build import current_coverage
from lancelake.table.operation_record import record_of


def file_format(file: DataFile) -> str:
    """Return the format version that a data file states, known or not."""
    return f"{file.file_major_version}.{file.file_minor_version}"


def deletion_path(snapshot: Snapshot, fragment: Fragment) -> str | None:
    """Return the path of a fragment's deletion file below the root it is stored in."""
    deletion = fragment.deletion_file
    return None if deletion is None else snapshot.files.deletion_file(fragment.id, deletion).path


def files_document(snapshot: Snapshot) -> Json:
    """Return the fragments of a version with their files, and totals."""
    counts = summarize(snapshot)
    return {
        "uri": snapshot.location.uri,
        "version": snapshot.version,
        "base_paths": {str(b.id): b.path for b in snapshot.manifest.base_paths},
        "fragments": [fragment_document(snapshot, f) for f in snapshot.manifest.fragments],
        "totals": {
            "fragments": counts.total_fragments,
            "data_files": counts.total_data_files,
            "deletion_files": counts.total_deletion_files,
            "data_bytes": counts.total_files_size,
            "rows": version_rows(snapshot),
            "deleted_rows": counts.total_deletion_file_rows,
        },
    }


def fragment_document(snapshot: Snapshot, fragment: Fragment) -> Json:
    """Return a fragment with its files."""
    deletion = fragment.deletion_file
    return {
        "id": fragment.id,
        "physical_rows": fragment.physical_rows,
        "rows": fragment.live_rows,
        "data_files": [
            {
                "path": file.path,
                "size_bytes": file.file_size_bytes,
                "file_version": file_format(file),
                "fields": list(file.fields),
                "column_indices": list(file.column_indices),
                "base_id": file.base_id,
            }
            for file in fragment.files
        ],
        "deletion_file": deletion
        and {
            "path": deletion_path(snapshot, fragment),
            "deleted_rows": deletion.num_deleted_rows,
            "base_id": deletion.base_id,
        },
    }


def fragment_map(snapshot: Snapshot, offset: int, limit: int) -> Json:
    """Return fragments in the order of the manifest: rows, deleted rows, bytes, files.

    The coverage of an index is a list of runs, each of the first position and the one after the
    last; None if the index does not record it.
    """
    every = snapshot.manifest.fragments
    fragments = every[offset : offset + limit]
    ids = [fragment.id for fragment in fragments]
    return {
        "version": snapshot.version,
        "total": len(every),
        "offset": offset,
        "ids": ids,
        "rows": [fragment.physical_rows for fragment in fragments],
        "deleted": [fragment.num_deleted_rows for fragment in fragments],
        "bytes": [_bytes(fragment) for fragment in fragments],
        "files": [len(fragment.files) for fragment in fragments],
        "indices": [
            {
                "name": index.name,
                "kind": index.kind,
                "columns": list(index.columns),
                "runs": None if covered is None else [list(run) for run in _runs(ids, covered)],
            }
            for index, covered in index_coverage(snapshot)
            if not index.is_system
        ],
    }


def one_fragment(snapshot: Snapshot, number: int) -> Json:
    """Return a fragment with its files, and the indices that cover it."""
    fragment = FragmentList.of(snapshot.manifest.fragments).by_id().get(FragmentId(number))
    if fragment is None:
        raise NotFoundError(f"there is no fragment {number}")
    indices = [
        {"name": index.name, "is_covered": None if covered is None else number in covered}
        for index, covered in index_coverage(snapshot)
        if not index.is_system
    ]
    return {**fragment_document(snapshot, fragment), "indices": indices}


def _bytes(fragment: Fragment) -> int | None:
    sizes = [file.file_size_bytes for file in fragment.files]
    recorded = [size for size in sizes if size is not None]
    return sum(recorded) if len(recorded) == len(sizes) else None


def _runs(ids: Sequence[int], covered: BitMap) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for position, number in enumerate(ids):
        if number in covered and start is None:
            start = position
        elif number not in covered and start is not None:
            yield start, position
            start = None
    if start is not None:
        yield start, len(ids)


Row = dict[str, Any]
_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.map_(pa.string(), pa.string())

_HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("operation", pa.string()),
        ("metrics", pa.map_(pa.string(), pa.int64())),
        ("user", pa.string()),
        ("engine", pa.string()),
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
        record = record_of(done)
        yield {
            "version": snapshot.version,
            "timestamp": snapshot.manifest.timestamp,
            "operation": None if done is None else record.name,
            "metrics": sorted(record.metrics.items()),
            "user": record.user,
            "engine": record.engine,
            "read_version": None if done is None else done.read_version,
            "message": None if done is None else done.message,
            "properties": sorted(record.properties.items()),
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
            "rows": version_rows(snapshot),
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
        indexed = None if covered is None else sum(rows.get(i, 0) for i in covered)
        kind, _ = describe(index.details)
        yield {
            "name": index.name,
            "type": kind or "Vector",
            "columns": [names[i] for i in index.fields if i in names],
            "uuid": str(index.uuid),
            "version": index.dataset_version,
            "fragments": None if covered is None else sorted(covered),
            "rows_indexed": None if index.is_system else indexed,
            "rows_not_indexed": None
            if indexed is None or index.is_system
            else sum(rows.values()) - indexed,
        }


_TABLES: dict[str, tuple[pa.Schema, Callable[[Snapshot], Iterator[Row]]]] = {
    "history": (_HISTORY, _history),
    "versions": (_VERSIONS, _versions),
    "fragments": (_FRAGMENTS, _fragments),
    "files": (_FILES, _files),
    "refs": (_REFS, _refs),
    "indices": (_INDICES, _indices),
}
