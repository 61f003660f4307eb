"""Nulls among the positions and sizes of blob v1 columns."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.arrays.blob_positions import with_nulls
from lancelake.format.file_version import FileVersion

TYPE = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
VALUES = [
    {"position": 64, "size": 3},
    {"position": 0, "size": 0},
    {"position": 65536, "size": 0},
    None,
]


def test_since_21_no_bytes_at_a_position_are_null() -> None:
    array = with_nulls(pa.array(VALUES, TYPE), FileVersion.V2_1)
    assert array.to_pylist() == [VALUES[0], VALUES[1], None, None]


def test_in_20_files_positions_stay_as_they_are() -> None:
    array = pa.array(VALUES, TYPE)
    assert with_nulls(array, FileVersion.V2_0).equals(array)


def test_slices_keep_their_rows() -> None:
    array = with_nulls(pa.array(VALUES, TYPE)[1:3], FileVersion.V2_1)
    assert array.to_pylist() == [VALUES[1], None]


def test_the_type_stays() -> None:
    assert with_nulls(pa.array(VALUES, TYPE), FileVersion.V2_1).type == TYPE
