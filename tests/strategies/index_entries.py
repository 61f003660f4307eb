"""Strategies for well-formed index entries: valid bitmaps, times within the calendar."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyroaring import BitMap

from lancelake.format.index_meta import IndexMetadata
from tests.strategies import format_values
from tests.strategies.format_values import u32

LAST_MS = 253_402_300_799_999


@st.composite
def bitmaps(draw: DrawFn) -> bytes:
    """Draw an encoded bitmap; none at all, empty, and in either of two encodings."""
    if draw(st.booleans()):
        return b""
    bitmap = BitMap(draw(st.sets(u32, max_size=5)))
    if draw(st.booleans()):
        bitmap |= BitMap(range(100, 300))
        bitmap.run_optimize()
    return bytes(bitmap.serialize())


@st.composite
def well_formed(draw: DrawFn) -> IndexMetadata:
    """Draw an index entry that can be shown."""
    created = draw(st.none() | st.integers(0, LAST_MS))
    entry = draw(format_values.index_entries())
    return replace(entry, fragment_bitmap=draw(bitmaps()), created_at_ms=created)
