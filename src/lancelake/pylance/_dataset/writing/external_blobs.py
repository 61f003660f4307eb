"""Blobs given by URI: stored as references, or read and stored with the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lancelake.errors import InvalidRequestError, InvalidRequestOSError
from lancelake.pylance.blob import BlobType
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table import ingest

_MODES = ("reference", "ingest")


def ensure_blob_mode(mode: str, *, allows_outside: bool) -> None:
    """Refuse an unknown mode, and permission for references where none are stored."""
    if mode not in _MODES:
        problem = f"Invalid external blob mode: {mode}"
        raise InvalidRequestError(problem, found=mode, action=f"Known modes: {', '.join(_MODES)}.")
    if mode == "ingest" and allows_outside:
        raise InvalidRequestOSError(
            'allow_external_blob_outside_bases only applies when external_blob_mode="reference"'
        )


def rows_with_blobs(
    data: Any, schema: pa.Schema | None, mode: str, options: Mapping[str, str] | None = None
) -> Any:
    """Return data to write; with mode `ingest`, blobs given by URI have their bytes."""
    if mode != "ingest":
        return data
    rows = ingest.to_reader(data, schema)
    return pa.RecordBatchReader.from_batches(rows.schema, _loaded(rows, options))


def _loaded(
    rows: pa.RecordBatchReader, options: Mapping[str, str] | None
) -> Iterator[pa.RecordBatch]:
    blobs = [isinstance(field.type, BlobType) for field in rows.schema]
    for batch in rows:
        columns = [
            _with_bytes(column, options) if is_blob else column
            for column, is_blob in zip(batch.columns, blobs, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _with_bytes(column: pa.ExtensionArray, options: Mapping[str, str] | None) -> pa.Array:
    values = column.storage.to_pylist()
    stored = [
        value
        if value is None or value["uri"] is None
        else {**dict.fromkeys(value), "data": _bytes(value, options)}
        for value in values
    ]
    return pa.ExtensionArray.from_storage(column.type, pa.array(stored, column.storage.type))


def _bytes(value: Mapping[str, Any], options: Mapping[str, str] | None) -> bytes:
    parent, _, name = value["uri"].rpartition("/")
    place = Location.parse(parent, options if "://" in parent else None)
    store = open_store(place)
    position, size = value.get("position"), value.get("size")
    if position is None and size is None:
        return store.get(name)
    whole = size if size is not None else store.head(name).size_bytes - (position or 0)
    return store.get_range(name, start=position or 0, length=whole)
