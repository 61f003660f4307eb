"""Nulls among the positions and sizes of a blob v1 column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.format.file_version import FileVersion


def with_nulls(array: pa.StructArray, version: FileVersion) -> pa.StructArray:
    """Return positions and sizes as official releases show them.

    Since 2.1 a null has size 0 and a position other than 0. In 2.0 files it has size 0 and
    position 1, and is shown like that.
    """
    if not version.leaves_only:
        return array
    position, size = array.field("position"), array.field("size")
    is_null = pc.and_(pc.equal(size, 0), pc.not_equal(position, 0))
    mask = pc.or_(is_null, pc.is_null(array))
    return pa.StructArray.from_arrays([position, size], fields=list(array.type), mask=mask)
