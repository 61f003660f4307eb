"""Rows and keys of MemWAL calls, and the version that they start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.primary_key import key_names
from lancelake.table.ingest import to_reader
from lancelake.table.open import Latest, open_snapshot


def newest(base: Snapshot) -> Snapshot:
    """Open the newest version of a version's line."""
    return open_snapshot(base.location, Latest(), main=base.main_location)


def key_rows(base: Snapshot, keys: Any) -> pa.Table | pa.RecordBatch:
    """Return keys as rows of the key columns; values are those of the only key column."""
    own = key_names(base.manifest.schema)
    schema = public_schema(base.manifest.schema)
    wanted = pa.schema([schema.field(name) for name in own])
    if isinstance(keys, pa.Array | pa.ChunkedArray) or _is_plain(keys):
        if len(own) != 1:
            raise InvalidRequestError(
                f"the key has the columns {', '.join(own)}",
                action="Pass keys as rows with these columns.",
            )
        return pa.table([_values(keys, wanted.field(0))], schema=wanted)
    rows = rows_of(keys, wanted)
    missing = [name for name in own if name not in rows.schema.names]
    if missing:
        raise InvalidRequestError(f"keys have no column {missing[0]}", column=missing[0])
    return rows.select(list(own))


def _values(keys: Any, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    try:
        if isinstance(keys, pa.Array | pa.ChunkedArray):
            return keys.cast(field.type)
        return pa.array(list(keys), field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"keys are not values of column {field.name} of type {field.type}: {error}"
        raise InvalidRequestError(msg, column=field.name) from error


def _is_plain(keys: Any) -> bool:
    """Whether keys are values, and not rows."""
    if not isinstance(keys, list | tuple | set | frozenset | range):
        return False
    return not any(isinstance(key, Mapping | pa.RecordBatch | pa.Table) for key in keys)


def rows_of(data: Any, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """Return rows of any supported type; the schema is for data without types of its own."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data
    return to_reader(data, schema).read_all()
