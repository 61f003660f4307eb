"""Key filters of upserts are byte-identical to those of official releases."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.format import operations as ops
from lancelake.format.operations import KeyExistenceFilter
from lancelake.txn import key_bloom
from tests.interop.official_histories import read
from tests.support.official import Official

KEY = "lance-schema:unenforced-primary-key:position"
RECORDED = {
    "int32": [pa.array(range(-5, 500), pa.int32())],
    "int64": [pa.array([1, 2, -3, 2**60], pa.int64())],
    "uint32": [pa.array([1, 2, 2**32 - 1], pa.uint32())],
    "uint64": [pa.array([1, 2, 2**64 - 1], pa.uint64())],
    "string": [pa.array(["", "a", "x" * 31, "x" * 32, "y" * 33, "z" * 100, "ü"])],
    "large_string": [pa.array(["", "a", "x" * 70], pa.large_string())],
    "binary": [pa.array([b"", b"abcdefgh", b"12345678901"], pa.binary())],
    "two parts": [pa.array([1, 2, 3], pa.int64()), pa.array(["a", "", "ccc"])],
}
UNRECORDED = {
    "int16": [pa.array([1, 2, 3], pa.int16())],
    "date": [pa.array([1, 2, 3], pa.date32())],
    "fixed size binary": [pa.array([b"ab", b"cd"], pa.binary(2))],
    "a part": [pa.array([1, 2], pa.int64()), pa.array([1, 2], pa.date32())],
}


@pytest.mark.parametrize("kind", RECORDED)
def test_a_filter_equals_the_official_one(official: Official, tmp_path: Path, kind: str) -> None:
    keys = _recorded(official, str(tmp_path / "table"), RECORDED[kind])
    assert key_bloom.build(keys.field_ids, [RECORDED[kind]]) == keys


@pytest.mark.parametrize("kind", UNRECORDED)
def test_official_releases_record_no_keys_of_other_types(
    official: Official, tmp_path: Path, kind: str
) -> None:
    keys = _recorded(official, str(tmp_path / "table"), UNRECORDED[kind])
    assert key_bloom.is_empty(keys)


def _recorded(official: Official, uri: str, columns: list[pa.Array]) -> KeyExistenceFilter:
    fields = [
        pa.field(f"k{n}", c.type, nullable=False, metadata={KEY: str(n + 1)})
        for n, c in enumerate(columns)
    ]
    values = pa.array([0] * len(columns[0]), pa.int32())
    table = pa.table([*columns, values], schema=pa.schema([*fields, pa.field("v", pa.int32())]))
    official.write(uri, table.slice(0, 0), data_storage_version="2.1")
    official.merge_insert(uri, table, [f.name for f in fields])
    operation = read(uri)[-1].transaction.operation
    assert isinstance(operation, ops.Update)
    assert operation.inserted_rows is not None
    return operation.inserted_rows
