"""Types and limits of ids, row addresses and version numbers."""

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


OFFSET_BITS = 32
"""Bits of a row address for the row within its fragment."""

MAX_ROWS = 1 << OFFSET_BITS
"""Number of rows of the largest fragment."""

MAX_FRAGMENT_ID = (1 << 64 - OFFSET_BITS) - 1
