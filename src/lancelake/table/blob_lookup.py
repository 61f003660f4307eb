"""Locate the blobs of selected rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.blobs import StoredBlob, locate
from lancelake.data.fragment_reader import MetaColumn
from lancelake.errors import InvalidNameError, InvalidRequestError, UnsupportedError, suggestion
from lancelake.expr.literals import at_path
from lancelake.format.row_address import fragment_of
from lancelake.format.rowids import U64Array
from lancelake.format.schema import Field, Schema, follow, split_path
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, addresses_of, live_addresses, take, take_at


class RowsBy(Enum):
    """How rows are identified."""

    IDS = "ids"
    ADDRESSES = "addresses"
    INDICES = "indices"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlob:
    """The blob of a row; None if the value is null."""

    address: int
    blob: StoredBlob | None


def find_blobs(snapshot: Snapshot, column: str, rows: U64Array, by: RowsBy) -> list[RowBlob]:
    """Find the blobs of these rows, in the order requested; every row must exist."""
    trail = _blob_column(snapshot.manifest.schema, column)
    addresses = _addresses(snapshot, rows, by)
    source = snapshot
    table = take_at(source, addresses, ScanRequest(columns=(column,)))
    descriptors = _descriptors(table, [field.name for field in trail])
    numbers = fragment_of(addresses)
    stored: list[StoredBlob | None] = [None] * len(addresses)
    fragments = {fragment.id: fragment for fragment in source.manifest.fragments}
    for number in np.unique(numbers).tolist():
        at = np.flatnonzero(numbers == number)
        part = descriptors.take(pa.array(at))
        blobs = locate(source.files, fragments[number], trail[-1], part)
        for position, blob in zip(at.tolist(), blobs, strict=True):
            stored[position] = blob
    return [
        RowBlob(address=address, blob=blob)
        for address, blob in zip(addresses.tolist(), stored, strict=True)
    ]


def _blob_column(schema: Schema, column: str) -> tuple[Field, ...]:
    """Return the path of fields that leads to a blob column."""
    names = (column,) if column in schema.names else split_path(column)
    trail = follow(
        schema.fields, names, exact=True, opens=lambda node: node.logical_type == "struct"
    )
    if len(trail) < len(names):
        advice = suggestion(column, schema.names, "columns")
        msg = f"Field '{column}' not found"
        raise InvalidNameError(msg, column=column, action=advice)
    if not (trail[-1].is_blob_v1 or trail[-1].is_blob_v2):
        raise InvalidRequestError(f"the column '{column}' is not a blob column", column=column)
    return trail


def _addresses(snapshot: Snapshot, rows: U64Array, by: RowsBy) -> U64Array:
    source = snapshot
    match by:
        case RowsBy.INDICES:
            name = MetaColumn.ROW_ADDRESS.value
            column = take(source, rows, ScanRequest(columns=(name,))).column(name)
            return np.asarray(column.to_numpy(), np.uint64)
        case RowsBy.IDS:
            addresses = addresses_of(source, rows)
        case RowsBy.ADDRESSES:
            addresses = live_addresses(source, rows)
        case _:
            assert_never(by)
    missing = rows[addresses == MISSING]
    if len(missing):
        what = "row id" if by is RowsBy.IDS else "row address"
        msg = (
            "Not supported: A take operation that includes row addresses must not target deleted "
            f"rows: {what} {int(missing[0])} is deleted or not part of this version"
        )
        raise UnsupportedError(msg, table=snapshot.location.uri, version=snapshot.version)
    return addresses


def _descriptors(table: pa.Table, path: Sequence[str]) -> pa.StructArray:
    batches = table.to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    return at_path(pa.concat_batches(batches) if batches else empty, path)
