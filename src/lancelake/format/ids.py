"""Types of ids and version numbers."""

from __future__ import annotations

from typing import NewType

Version = NewType("Version", int)
FragmentId = NewType("FragmentId", int)
FieldId = NewType("FieldId", int)
BaseId = NewType("BaseId", int)
RowId = NewType("RowId", int)
RowAddress = NewType("RowAddress", int)

NO_PARENT = FieldId(-1)
TOMBSTONE = FieldId(-2)

DETACHED_BIT = 1 << 63


def is_detached(version: int) -> bool:
    """Whether a version is detached, that is, outside the main line."""
    return bool(version & DETACHED_BIT)
