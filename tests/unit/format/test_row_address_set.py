"""Sets of row addresses in the serialized form of official Lance."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format import row_address


def test_a_set_survives_its_serialized_form() -> None:
    parts = {0: BitMap([0, 2]), 7: BitMap([5])}
    assert row_address.decode(row_address.encode(parts)) == parts


def test_an_entry_without_bytes_stands_for_a_whole_fragment() -> None:
    whole = b"\x01\0\0\0" + b"\x03\0\0\0" + b"\0\0\0\0"
    assert len(row_address.decode(whole)[3]) == 1 << 32


@pytest.mark.parametrize(
    "data", [b"", b"\x01\0\0\0", b"\x01\0\0\0\0\0\0\0\xff\0\0\0x", b"\1\0\0\0\0\0\0\0\1\0\0\0x"]
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="Invalid row address mask"):
        row_address.decode(data)
