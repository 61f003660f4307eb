"""Row offsets of in-place updates are read from fields of newer releases."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import decode_offsets, encode_offsets


def test_bitmaps_are_found_by_fragment():
    first, second = b"R\x07\x08\x01\x12\x03abc", b"R\x07\x08\x02\x12\x03def"

    assert decode_offsets(first + second) == {1: b"abc", 2: b"def"}


def test_the_first_fragment_has_no_number_on_the_wire():
    assert decode_offsets(b"R\x05\x12\x03abc") == {0: b"abc"}


def test_other_fields_are_passed_over():
    assert decode_offsets(b"\x82\xfa\x01\x01x") == {}


def test_no_fields_mean_no_rows():
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize("damaged", [b"P\x01", b"R\x02\x10\x01", b"R\x05ab", b"R\x02\x0a\x00"])
def test_damaged_bytes_are_refused(damaged):
    with pytest.raises(CorruptTableError):
        decode_offsets(damaged)


def test_what_was_written_is_read():
    offsets = {FragmentId(0): b"", FragmentId(1): b"x" * 300, FragmentId(1 << 31): b"abc"}

    assert decode_offsets(encode_offsets(offsets)) == offsets
