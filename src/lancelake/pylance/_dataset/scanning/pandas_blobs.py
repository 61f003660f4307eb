"""Blobs in pandas data frames: as files, as bytes or as descriptors."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap
from lancelake.pylance.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelake.scan.request import ScanRequest
from lancelake.table.blobs import RowsBy, find_blobs

_ADDRESS = MetaColumn.ROW_ADDRESS.value


class BlobMode(Enum):
    """Form of blobs in a data frame."""

    LAZY = "lazy"
    BYTES = "bytes"
    DESCRIPTIONS = "descriptions"


class _Scan(Protocol):
    def to_table(self) -> pa.Table: ...


def blob_mode_named(name: str) -> BlobMode:
    """Parse the name of a form."""
    try:
        return BlobMode(name)
    except ValueError as error:
        problem = "blob_mode must be one of: 'lazy', 'bytes', 'descriptions'"
        raise InvalidRequestError(problem, found=name) from error


def with_blob_files(
    snapshot: Snapshot,
    request: ScanRequest,
    changed: Callable[..., _Scan],
    kwargs: dict[str, Any],
) -> Any:
    """Read a data frame whose top-level blob columns hold files, or None for nulls."""
    columns = _blob_columns(snapshot, request)
    if not columns:
        return changed().to_table().to_pandas(**kwargs)
    table = changed(with_row_address=True).to_table()
    addresses = np.asarray(table.column(_ADDRESS), dtype=np.uint64)
    shown = table if request.with_row_address else table.drop_columns([_ADDRESS])
    frame = shown.to_pandas(**kwargs)
    for output, column in columns.items():
        found = find_blobs(snapshot, column, addresses, RowsBy.ADDRESSES)
        files = np.empty(len(found), dtype=object)
        for i, row in enumerate(found):
            files[i] = None if row.blob is None else BlobFile(row.blob, DEFAULT_BLOB_BUFFER_SIZE)
        frame[output] = files
    return frame


def _blob_columns(snapshot: Snapshot, request: ScanRequest) -> dict[str, str]:
    """Return the stored column of each output with blobs."""
    fields = snapshot.manifest.schema.fields
    blobs = [field.name for field in fields if field.is_blob_v1 or field.is_blob_v2]
    match request.columns:
        case None:
            return {name: name for name in blobs}
        case FrozenMap() as computed:
            return {name: text for name, text in computed.items() if text in blobs}
        case names:
            return {name: name for name in names if name in blobs}
