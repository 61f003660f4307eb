"""Cache of the columns of small fragments, for repeated reads.

Opening a small file takes far longer than reading it, and data files never change.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lancelake.data.recently_used import RecentlyUsed
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.storage.table_files import FileAt, TableFiles

_MOST_FRAGMENTS = 4096
_MOST_ROWS = 1024
_MOST_BYTES = 16 << 10

_MOST_SCHEMAS = 256

_Key = tuple[tuple[FileAt, ...], int]
_Kept = tuple[Schema, pa.RecordBatch]
"""A schema whose address is part of the key, and the rows."""

_kept: RecentlyUsed[_Key, _Kept] = RecentlyUsed(_MOST_FRAGMENTS)
_schemas: RecentlyUsed[Schema, Schema] = RecentlyUsed(_MOST_SCHEMAS)


def interned(schema: Schema) -> Schema:
    """Return the same object for equal schemas, because comparing schemas per file is slow."""
    return _schemas.get(schema, lambda: schema)


def remembered(
    files: TableFiles, fragment: Fragment, schema: Schema, read: Callable[[], pa.RecordBatch]
) -> pa.RecordBatch | None:
    """Return all physical rows of a fragment; None when it is not small.

    The cache key includes the identity of `schema`, see `interned`.
    """
    rows = fragment.physical_rows
    if rows is None or not 0 < rows <= _MOST_ROWS or not fragment.files:
        return None
    if any((file.file_size_bytes or _MOST_BYTES + 1) > _MOST_BYTES for file in fragment.files):
        return None
    key = tuple(files.data_file(file) for file in fragment.files), id(schema)
    if _kept.peek(key) is None:
        found = read()
        # Few bytes of a file can encode many values.
        if found.nbytes > _MOST_BYTES:
            return found
        return _kept.get(key, lambda: (schema, found))[1]
    return _kept.get(key, lambda: (schema, read()))[1]
