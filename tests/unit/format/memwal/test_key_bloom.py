from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_keys
from lancelake.format.memwal.wal_files import BLOOM_FILE
from tests.support.memwal_tables import COMPOSITE, SIMPLE, generation_dir


def test_the_filter_is_that_of_the_official_release() -> None:
    expected = (generation_dir(SIMPLE, 1) / BLOOM_FILE).read_bytes()
    assert wal_keys.build([pa.array([1, 4, 5, 2])]) == expected


def test_the_filter_of_two_columns_is_that_of_the_official_release() -> None:
    expected = (generation_dir(COMPOSITE, 1) / BLOOM_FILE).read_bytes()
    assert wal_keys.build([pa.array(["Bern", "Rome"]), pa.array([1, -7], pa.int32())]) == expected


def test_keys_of_a_filter_are_found() -> None:
    data = wal_keys.build([pa.array(range(1000))])
    assert wal_keys.may_contain(data, [pa.array(range(1000))]).all()
    assert wal_keys.may_contain(data, [pa.array(range(1000, 2000))]).sum() < 100


def test_a_filter_of_types_that_are_not_hashed_is_not_usable() -> None:
    assert wal_keys.is_usable([pa.int32(), pa.string(), pa.binary()])
    assert not wal_keys.is_usable([pa.int64(), pa.bool_()])
    assert any(wal_keys.build([pa.array([True, False])]))


def test_a_filter_of_another_size_is_corrupt() -> None:
    with pytest.raises(CorruptTableError, match="7 bytes"):
        wal_keys.may_contain(b"1234567", [pa.array([1])])
