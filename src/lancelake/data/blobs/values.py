"""Load blob values for descriptors, so that they can be written to another file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.arrays.retype import struct_of
from lancelake.data.blobs.reads import StoredBlob, locate, read_all
from lancelake.data.file_schema import BLOB_VALUE
from lancelake.errors import UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import BlobKind, has_blobs
from lancelake.format.column_path import quote_segment
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Field, Schema
from lancelake.storage.table_files import TableFiles

_BATCH_BYTES = 32 << 20

_Found = list[StoredBlob | None]
Find = Callable[[Field, pa.StructArray], _Found]
"""Locates the blobs of rows from a column's descriptors."""


def value_field(field: Field) -> pa.Field | None:
    """Return the field of a blob value as passed to a writer; None without blobs."""
    if not has_blobs(field):
        return None
    if field.is_blob_v2:
        return storage_field(field).with_type(BLOB_VALUE)
    if field.is_blob_v1:
        return storage_field(field).with_type(pa.large_binary())
    _ensure_plain(field)
    children = [value_field(child) or storage_field(child) for child in field.children]
    return pa.field(field.name, pa.struct(children), field.nullable)


def with_blobs(
    files: TableFiles, fragment: Fragment, schema: Schema, batch: pa.RecordBatch
) -> Iterator[tuple[list[pa.Array], int]]:
    """Yield parts of a batch with values in place of descriptors, and the offset of each part."""
    return with_found_blobs(partial(locate, files, fragment), schema, batch.columns)


def with_found_blobs(
    find: Find, schema: Schema, columns: Sequence[pa.Array]
) -> Iterator[tuple[list[pa.Array], int]]:
    """Same as `with_blobs`, for rows of any fragments."""
    if not any(has_blobs(field) for field in schema.fields):
        yield list(columns), 0
        return
    pairs = list(zip(schema.fields, columns, strict=True))
    found = [_located(find, field, array) for field, array in pairs]
    for start, stop in _spans(len(columns[0]), [blobs for part in found for blobs in part]):
        values = [
            _valued(field, array[start:stop], iter([blobs[start:stop] for blobs in part]))
            for (field, array), part in zip(pairs, found, strict=True)
        ]
        yield values, start


def _located(find: Find, field: Field, array: pa.Array) -> list[_Found]:
    """Locate the blobs of each blob column that a field is or contains."""
    if field.is_blob_v1 or field.is_blob_v2:
        return [find(field, array)]
    if not has_blobs(field):
        return []
    members = enumerate(field.children)
    return [f for i, child in members for f in _located(find, child, array.field(i))]


def _valued(field: Field, array: pa.Array, found: Iterator[_Found]) -> pa.Array:
    """Replace descriptors with values, one blob column after the other."""
    if field.is_blob_v1:
        return pa.array(read_all(next(found)), pa.large_binary())
    if field.is_blob_v2:
        return _references(array, next(found))
    if not has_blobs(field):
        return array
    children = [_valued(child, array.field(i), found) for i, child in enumerate(field.children)]
    fields = [value_field(child) or storage_field(child) for child in field.children]
    return struct_of(children, fields, array)


def _references(descriptors: pa.StructArray, found: _Found) -> pa.StructArray:
    """Load bytes stored in the table; references to external blobs are kept."""
    kinds = pc.struct_field(descriptors, "kind").to_pylist()
    is_outside = [
        blob is not None and kind == BlobKind.EXTERNAL
        for kind, blob in zip(kinds, found, strict=True)
    ]
    pairs = list(zip(found, is_outside, strict=True))
    data = read_all([None if outside else blob for blob, outside in pairs])
    places = [blob if outside else None for blob, outside in pairs]
    ranges = [None if b is None or b.is_whole else (b.position, b.length or 0) for b in places]
    members = [
        pa.array(data, pa.large_binary()),
        pa.array(_uris(descriptors, places), pa.string()),
        pa.array([None if r is None else r[0] for r in ranges], pa.uint64()),
        pa.array([None if r is None else r[1] for r in ranges], pa.uint64()),
    ]
    mask = pa.array([blob is None for blob in found])
    return pa.StructArray.from_arrays(members, fields=list(BLOB_VALUE), mask=mask)


def _uris(descriptors: pa.StructArray, places: _Found) -> list[str | None]:
    """Return URIs as stored; one below a base of the table becomes absolute."""
    bases = pc.struct_field(descriptors, "blob_id").to_pylist()
    given = pc.struct_field(descriptors, "blob_uri").to_pylist()
    rows = zip(places, bases, given, strict=True)
    return [None if blob is None else blob.place.uri if base else uri for blob, base, uri in rows]


def _ensure_plain(field: Field) -> None:
    """Refuse nested blobs that the writer does not support."""
    below = [node for child in field.children for node in child.walk()]
    if field.logical_type == "struct" and not any(node.is_blob_v2 for node in below):
        return
    where = quote_segment(field.name)
    msg = f"column {where} has blobs inside a {field.logical_type}, which cannot be rewritten"
    raise UnsupportedError(msg, action="Compact a table without such a column.", column=where)


def _spans(rows: int, columns: Sequence[_Found]) -> Iterator[tuple[int, int]]:
    """Split rows into spans within the byte limit of a batch; a single row may exceed it."""
    start, total = 0, 0
    for row in range(rows):
        size = sum(blob.length or 0 for blobs in columns if (blob := blobs[row]) is not None)
        if row > start and total + size > _BATCH_BYTES:
            yield start, row
            start, total = row, 0
        total += size
    yield start, rows
