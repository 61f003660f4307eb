"""Rows for display, page by page, with texts and pictures on demand, and what can be searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import MetaColumn
from lancelake.describe import cells
from lancelake.describe.documents import Json
from lancelake.describe.summary import index_coverage
from lancelake.errors import InvalidRequestError
from lancelake.expr.literals import at_path
from lancelake.format.row_address import fragment_of
from lancelake.format.schema import Field, quote_segment
from lancelake.index.kind import indexed_type
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, live_addresses, take_at
from lancelake.scan.search.prepared import prepare
from lancelake.table.blob_lookup import RowsBy, find_blobs

ROW_ID = MetaColumn.ROW_ID.value
ROW_ADDRESS = MetaColumn.ROW_ADDRESS.value
_MOST_ADDRESS = (1 << 64) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which rows to show."""

    offset: int = 0
    limit: int = 25
    filter: str | None = None
    columns: tuple[str, ...] | None = None


def row_page(snapshot: Snapshot, request: PageRequest) -> Json:
    """Return rows in scan order with their ids and addresses, and whether there are more."""
    rows = ScanRequest(
        columns=request.columns,
        filter=request.filter,
        offset=request.offset,
        limit=request.limit + 1,
        batch_size=request.limit + 1,
        with_row_id=True,
        with_row_address=True,
    )
    with prepare(snapshot, rows).run() as reader:
        first = cells.FirstRows(reader, request.limit)
        document = rows_document(first.table(reader.schema), snapshot)
    return {**document, "has_more": first.has_more}


def count_matching(snapshot: Snapshot, filter: str | None) -> int:
    """Count the rows that match a filter."""
    return prepare(snapshot, ScanRequest(filter=filter)).count()


def rows_document(table: pa.Table, snapshot: Snapshot) -> Json:
    """Return rows as cells, with their ids and addresses as texts apart from the columns.

    Rows without an address, as those of a query, have none, and include small images.
    """
    names = [name for name in table.column_names if name not in (ROW_ID, ROW_ADDRESS)]
    return {
        "version": snapshot.version,
        "branch": snapshot.branch,
        "ids": _texts(table, ROW_ID),
        "addresses": _texts(table, ROW_ADDRESS),
        **cells.cells_document(
            table.select(names), snapshot, has_images=ROW_ADDRESS not in table.column_names
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlace:
    """A value by the address of its row and the name of its column."""

    address: int
    column: str


def cell_image(snapshot: Snapshot, place: CellPlace, most: int) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image.

    Raises InvalidRequestError for a value that is not an image, or has more than `most` bytes.
    """
    field = _field(snapshot, place)
    data = (_read_blob if _is_blob(field) else _read_stored)(snapshot, place, most)
    media_type = None if data is None else cells.image_type(data[: cells.SIGNATURE_BYTES])
    if data is None or media_type is None:
        raise InvalidRequestError(f"this value of column {place.column!r} is not an image")
    return media_type, data


def cell_text(snapshot: Snapshot, place: CellPlace, most: int) -> Json:
    """Return a value as text, up to a number of characters."""
    _field(snapshot, place)
    return cells.whole_text(_value(snapshot, place), most)


def _texts(table: pa.Table, name: str) -> list[str] | None:
    """Return row numbers as texts, because those of JSON cannot have 64 bits."""
    if name not in table.column_names:
        return None
    return [str(value) for value in table.column(name).to_pylist()]


def _field(snapshot: Snapshot, place: CellPlace) -> Field:
    return snapshot.manifest.schema.resolve(place.column)[-1]


def _is_blob(field: Field) -> bool:
    return field.is_blob_v1 or field.is_blob_v2


def _address(snapshot: Snapshot, place: CellPlace) -> np.ndarray:
    if not 0 <= place.address <= _MOST_ADDRESS:
        raise InvalidRequestError(f"{place.address} is not a row address")
    address = np.array([place.address], dtype=np.uint64)
    if live_addresses(snapshot, address)[0] == MISSING:
        number = int(fragment_of(address)[0])
        raise InvalidRequestError(f"there is no such row in fragment {number}")
    return address


def _value(snapshot: Snapshot, place: CellPlace) -> pa.Scalar:
    request = ScanRequest(columns=(place.column,))
    table = take_at(snapshot, _address(snapshot, place), request)
    names = [field.name for field in snapshot.manifest.schema.resolve(place.column)]
    return at_path(table.to_batches()[0], names)[0]


def _read_stored(snapshot: Snapshot, place: CellPlace, most: int) -> bytes | None:
    value = cells.unwrap(_value(snapshot, place))
    if not value.is_valid or not cells.is_bytes(value.type):
        return None
    buffer = value.as_buffer()
    _ensure_small(place, buffer.size, most)
    data: bytes = buffer.to_pybytes()
    return data


def _read_blob(snapshot: Snapshot, place: CellPlace, most: int) -> bytes | None:
    rows = _address(snapshot, place)
    (row,) = find_blobs(snapshot, place.column, rows, RowsBy.ADDRESSES)
    if row.blob is None or row.blob.size < cells.SIGNATURE_BYTES:
        return None
    first = row.blob.read(0, cells.SIGNATURE_BYTES)
    if cells.image_type(first) is None:
        return None
    _ensure_small(place, row.blob.size, most)
    return row.blob.read(0, row.blob.size)


def _ensure_small(place: CellPlace, size: int, most: int) -> None:
    if size > most:
        problem = f"this value of column {place.column!r} has {size:,} bytes, more than {most:,}"
        raise InvalidRequestError(problem, column=place.column)


_TEXT_KIND = "Inverted"


def searchable_columns(snapshot: Snapshot) -> Json:
    """Return the columns with vectors and their dimensions, and those with a text index."""
    fields = snapshot.manifest.schema.fields
    types = [(field.name, VectorType.of(indexed_type(field))) for field in fields]
    texts = [
        column
        for index, _ in index_coverage(snapshot)
        if index.kind == _TEXT_KIND
        for column in index.columns
    ]
    return {
        "vectors": [
            {"column": quote_segment(name), "dimension": kind.dimension, "is_multi": kind.is_multi}
            for name, kind in types
            if kind is not None
        ],
        "texts": list(dict.fromkeys(texts)),
    }
