"""Worker inside the environment of an official release; answers JSON-lines requests.

A request is `{"op": name, "args": {...}}`; the answer is `{"ok": value}` or
`{"error": {"kind": ..., "message": ...}}`. A value `{"$table": path}` stands for an Arrow
stream file, `{"$schema": hex}` for a serialised Arrow schema, in both directions.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance as typed_lance
import pyarrow as pa
from lance.dataset import ColumnOrdering

lance: Any = typed_lance  # releases differ in their annotations
Json = Any  # whatever `json` can carry; checked by the caller
OPS: dict[str, Callable[..., Json]] = {}
# Arrow for Rust panics on 128-bit values that are only aligned to 8 bytes.
ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
numbers = itertools.count()


def op(function: Callable[..., Json]) -> Callable[..., Json]:
    """Offer the function as an operation under its own name."""
    OPS[function.__name__] = function
    return function


def latest(uri: str) -> int:
    """Return the newest version number."""
    return int(lance.dataset(uri).version)


@op
def write(uri: str, table: pa.Table, **options: Json) -> int:
    """Create, append or overwrite (`mode`)."""
    known = {k: v for k, v in options.items() if v is not None}
    return int(lance.write_dataset(table, uri, **known).version)


@op
def delete(uri: str, predicate: str) -> int:
    """Delete the rows that match."""
    lance.dataset(uri).delete(predicate)
    return latest(uri)


@op
def update(uri: str, updates: dict[str, str], where: str | None) -> int:
    """Set columns to SQL expressions."""
    lance.dataset(uri).update(updates, where=where)
    return latest(uri)


@op
def merge_insert(
    uri: str,
    table: pa.Table,
    on: list[str],
    when_matched: bool,
    when_not_matched: bool,
    when_not_matched_by_source: bool,
) -> int:
    """Upsert: each flag switches one branch of the merge on."""
    builder = lance.dataset(uri).merge_insert(on)
    if when_matched:
        builder = builder.when_matched_update_all()
    if when_not_matched:
        builder = builder.when_not_matched_insert_all()
    if when_not_matched_by_source:
        builder = builder.when_not_matched_by_source_delete()
    builder.execute(table)
    return latest(uri)


@op
def add_columns(uri: str, expressions: dict[str, str]) -> int:
    """Add columns computed by SQL."""
    lance.dataset(uri).add_columns(expressions)
    return latest(uri)


@op
def add_null_columns(uri: str, schema: pa.Schema) -> int:
    """Add columns without data."""
    lance.dataset(uri).add_columns(list(schema))
    return latest(uri)


@op
def drop_columns(uri: str, columns: list[str]) -> int:
    """Remove columns."""
    lance.dataset(uri).drop_columns(columns)
    return latest(uri)


@op
def rename_column(uri: str, path: str, name: str) -> int:
    """Rename one column."""
    lance.dataset(uri).alter_columns({"path": path, "name": name})
    return latest(uri)


@op
def cast_column(uri: str, path: str, schema: pa.Schema) -> int:
    """Change the type of one column to that of the schema's only field."""
    lance.dataset(uri).alter_columns({"path": path, "data_type": schema.field(0).type})
    return latest(uri)


@op
def compact(uri: str, **options: Json) -> int:
    """Compact the fragments."""
    lance.dataset(uri).optimize.compact_files(**options)
    return latest(uri)


@op
def create_scalar_index(uri: str, column: str, index_type: str, **options: Json) -> int:
    """Build a scalar index."""
    lance.dataset(uri).create_scalar_index(column, index_type, **options)
    return latest(uri)


@op
def create_index(uri: str, column: str, index_type: str, **options: Json) -> int:
    """Build a vector index."""
    lance.dataset(uri).create_index(column, index_type, **options)
    return latest(uri)


@op
def tag(uri: str, name: str, version: int) -> None:
    """Name a version."""
    lance.dataset(uri).tags.create(name, version)


@op
def branch(uri: str, name: str, version: int | None) -> str:
    """Fork a branch; return the URI it can be opened by."""
    return str(lance.dataset(uri).create_branch(name, version).uri)


@op
def restore(uri: str, version: int) -> int:
    """Restore an old version as the newest."""
    lance.dataset(uri, version=version).restore()
    return latest(uri)


@op
def update_config(uri: str, values: dict[str, str | None]) -> int:
    """Set config keys; None removes."""
    lance.dataset(uri).update_config(values)
    return latest(uri)


@op
def shallow_clone(uri: str, target: str, version: int | str) -> int:
    """Clone without copying data."""
    lance.dataset(uri).shallow_clone(target, version)
    return latest(target)


@op
def read(uri: str, version: Json, options: dict[str, Json]) -> pa.Table:
    """Scan into a table."""
    ordering = options.pop("order_by", None)
    if ordering is not None:
        options["order_by"] = [ColumnOrdering(*o) for o in ordering]
    return lance.dataset(uri, version=version).to_table(**options)


@op
def take(uri: str, indices: list[int], version: Json, columns: Json) -> pa.Table:
    """Read rows by position."""
    return lance.dataset(uri, version=version).take(indices, columns=columns)


@op
def count_rows(uri: str, version: Json, filter: str | None) -> int:
    """Count the rows that match."""
    return int(lance.dataset(uri, version=version).count_rows(filter))


@op
def info(uri: str, version: Json) -> Json:
    """Describe one version and what surrounds it."""
    ds = lance.dataset(uri, version=version)
    return {
        "version": ds.version,
        "latest_version": ds.latest_version,
        "schema": ds.schema,
        "count_rows": ds.count_rows(),
        "versions": [v["version"] for v in ds.versions()],
        "fragments": [_fragment(f) for f in ds.get_fragments()],
        "tags": {name: _ref(body) for name, body in ds.tags.list().items()},
        "branches": {name: _ref(body) for name, body in ds.branches.list().items()},
        "config": ds.config(),
        "data_storage_version": ds.data_storage_version,
        "indices": [{"name": i["name"], "type": i["type"]} for i in ds.list_indices()],
    }


@op
def run(uri: str, code: str, inputs: dict[str, Json]) -> Json:
    """Execute statements with `lance`, `pa`, `uri` and the inputs; answer the name `result`."""
    names: dict[str, Json] = {"lance": lance, "pa": pa, "uri": uri, "result": None, **inputs}
    exec(code, names)
    return names["result"]


def _fragment(fragment: Json) -> Json:
    meta = fragment.metadata
    return {
        "id": fragment.fragment_id,
        "physical_rows": fragment.physical_rows,
        "num_deletions": fragment.num_deletions,
        "files": [
            {
                "path": f.path,
                "fields": list(f.fields),
                "column_indices": list(f.column_indices),
                "file_version": f"{f.file_major_version}.{f.file_minor_version}",
            }
            for f in meta.files
        ],
    }


def _ref(body: dict[str, Json]) -> Json:
    keys = ("branch", "version", "parent_branch", "parent_version")
    return {key: body[key] for key in keys if key in body}


def decode(value: Json) -> Json:
    """Replace markers by Arrow values."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$table" in value:
        with (
            pa.OSFile(value["$table"]) as source,
            pa.ipc.open_stream(source, options=ALIGNED) as reader,
        ):
            return reader.read_all()
    if "$schema" in value:
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(value["$schema"])))
    return {k: decode(v) for k, v in value.items()}


def encode(value: Json, folder: Path) -> Json:
    """Replace Arrow values by markers and everything unknown by its text."""
    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    if isinstance(value, pa.Table):
        path = str(folder / f"out-{next(numbers)}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return {"$table": path}
    if isinstance(value, pa.Schema):
        return {"$schema": value.serialize().to_pybytes().hex()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): encode(v, folder) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(v, folder) for v in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def answer(line: str, folder: Path) -> Json:
    """Run one request; every failure, panics included, becomes an answer."""
    try:
        request = json.loads(line)
        return {"ok": encode(OPS[request["op"]](**decode(request["args"])), folder)}
    except BaseException as error:  # noqa: BLE001  a Rust panic derives from BaseException only
        return {"error": {"kind": type(error).__name__, "message": str(error)}}


def main() -> None:
    """Serve until stdin closes."""
    folder = Path(sys.argv[1])
    # Whatever a library prints must not reach the channel of answers.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        channel.write(json.dumps(answer(line, folder)) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
