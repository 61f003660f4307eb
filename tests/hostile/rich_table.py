"""A small table with every kind of file and entry, to be tampered with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.pylance import Blob, DatasetBasePath, blob_array, blob_field

ROWS = 24
_PACKED = b"p" * 200
_DEDICATED = b"d" * 2_000
_THRESHOLDS = {
    "lance-encoding:blob-inline-size-threshold": "100",
    "lance-encoding:blob-dedicated-size-threshold": "1000",
}


def build(root: Path) -> Path:
    """Write a table below a folder and return its place; everything it names is in that folder.

    Two fragments with deletions, of both kinds; stable row ids; blobs of every kind; a base path, a
    tag, a branch, config, metadata.
    """
    uri = root / "table.lance"
    inside = uri / "external.bin"
    uri.mkdir(parents=True)
    inside.write_bytes(b"external")
    base = DatasetBasePath(str(uri / "base"), name="base", is_dataset_root=True)
    table = lance.write_dataset(
        rows(0, ROWS // 2, inside),
        str(uri),
        data_storage_version="2.2",
        enable_stable_row_ids=True,
        initial_bases=[base],
        allow_external_blob_outside_bases=True,
    )
    table.insert(rows(ROWS // 2, ROWS, inside), allow_external_blob_outside_bases=True)
    table.insert(
        rows(ROWS, ROWS + 4, inside),
        target_bases=["base"],
        allow_external_blob_outside_bases=True,
    )
    table.delete("id = 3 OR id = 15")
    table.update({"text": "'changed'"}, where="id = 20")
    table.update_config({"lance.auto_cleanup.interval": "1000", "key": "value"})
    table.tags.create("first", 1)
    table.create_branch("side")
    return uri


def rows(first: int, last: int, external: Path | None = None) -> pa.Table:
    """Return rows of the table; without an external file their blobs are small."""
    numbers = list(range(first, last))
    large = [b""] * 3 if external is None else [_PACKED, _DEDICATED, Blob(uri=str(external))]
    blobs = [b"inline", *large, None]
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("meta", pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("vector", pa.list_(pa.float32(), 4)),
        _with_thresholds(blob_field("blob")),
    ]
    columns = [
        pa.array(numbers, pa.int64()),
        pa.array([f"row {n}" for n in numbers]),
        pa.array([{"a": n, "b": "b"} for n in numbers], fields[2].type),
        pa.array([["x"] * (n % 3) for n in numbers], fields[3].type),
        pa.array([[float(n)] * 4 for n in numbers], fields[4].type),
        blob_array([blobs[n % 5] for n in numbers]),
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _with_thresholds(field: pa.Field) -> pa.Field:
    """Let small blobs take the places that large ones have."""
    return field.with_metadata({**(field.metadata or {}), **_THRESHOLDS})
