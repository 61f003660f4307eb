from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import UnsupportedError
from lancelake.format.memwal import wal_keys


def test_strings_are_hashed_byte_by_byte_after_the_last_word() -> None:
    assert wal_keys.buckets(pa.array(["abcde"]), 1000).tolist() == [756]


def test_null_is_in_the_first_bucket() -> None:
    assert wal_keys.buckets(pa.array([None, None], pa.string()), 8).tolist() == [0, 0]


def test_equal_numbers_are_in_one_bucket() -> None:
    zeros = wal_keys.hashes(pa.array([0.0, -0.0]))
    assert zeros[0] == zeros[1]
    narrow = wal_keys.hashes(pa.array([-1], pa.int8()))
    assert narrow.tolist() == wal_keys.hashes(pa.array([-1], pa.int32())).tolist()


@pytest.mark.parametrize("kind", [pa.binary(), pa.float16(), pa.date64(), pa.decimal128(5, 2)])
def test_types_that_no_release_hashes_are_refused(kind: pa.DataType) -> None:
    value = pa.array([b""] if kind == pa.binary() else [0], kind)
    with pytest.raises(UnsupportedError, match="cannot be divided"):
        wal_keys.hashes(value)
    with pytest.raises(UnsupportedError, match="cannot be divided"):
        wal_keys.hashes(value[:0])


@pytest.mark.parametrize("kind", [pa.int8(), pa.bool_(), pa.float64(), pa.utf8(), pa.date32()])
def test_no_values_of_a_type_that_is_hashed(kind: pa.DataType) -> None:
    assert wal_keys.buckets(pa.nulls(2, kind), 8).tolist() == [0, 0]
    assert not len(wal_keys.hashes(pa.array([], kind)))
