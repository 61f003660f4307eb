"""Errors about damaged index files name the index."""

from __future__ import annotations

import struct

import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.index.stored_segment import reading_index


@pytest.mark.parametrize("kind", [IndexError, KeyError, ValueError, struct.error])
def test_contradictory_entries_are_damage(kind: type[Exception]) -> None:
    problem = "index 'words' cannot be read: .*no list 7"
    with pytest.raises(CorruptTableError, match=problem), reading_index("words"):
        raise kind("no list 7")


def test_other_errors_keep_their_class() -> None:
    problem = "index 'words' cannot be read: a new layout"
    with pytest.raises(UnsupportedError, match=problem), reading_index("words"):
        raise UnsupportedError("a new layout")
