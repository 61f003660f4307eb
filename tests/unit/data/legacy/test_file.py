"""Row ranges and single rows of legacy files, in few reads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.column_reader import ColumnReader
from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.frozen import FrozenMap
from tests.support.legacy_tables import LegacyTable, MemorySource, legacy_table

WORDS = pa.array(["zero", "one", "two"])


def rows(start: int, stop: int) -> pa.RecordBatch:
    numbers = list(range(start, stop))
    return pa.record_batch(
        {
            "i": pa.array(numbers, pa.int32()),
            "b": pa.array([n % 3 == 0 for n in numbers], pa.bool_()),
            "s": pa.array([str(n) * (n % 4) or None for n in numbers], pa.string()),
            "l": pa.array([[str(m) for m in range(n % 5)] for n in numbers], pa.list_(pa.string())),
            "d": pa.DictionaryArray.from_arrays(
                pa.array([n % 3 for n in numbers], pa.int8()), WORDS
            ),
        }
    )


def grouped(sizes: Sequence[int]) -> LegacyTable:
    ends = np.cumsum([0, *sizes]).tolist()
    return legacy_table([rows(a, b) for a, b in itertools.pairwise(ends)])


def opened(table: LegacyTable, source: MemorySource | None = None) -> LegacyFile:
    manifest = table.manifest_source()
    return LegacyFile.open(source or table.source(), table.file, table.fields, manifest=manifest)


SIZES = [5, 0, 1, 9, 3]
FILE = opened(grouped(SIZES))
WHOLE = pa.Table.from_batches([rows(0, sum(SIZES))])


def test_it_is_a_column_reader() -> None:
    reader: ColumnReader = FILE
    assert reader.num_rows == sum(SIZES)


@given(st.data(), st.integers(1, 25))
def test_batches_are_the_asked_rows_in_the_asked_size(data: st.DataObject, size: int) -> None:
    start = data.draw(st.integers(0, FILE.num_rows))
    stop = data.draw(st.integers(start, FILE.num_rows))
    batches = list(FILE.batches(start=start, stop=stop, batch_rows=size))
    read = pa.Table.from_batches(batches, FILE.schema)
    assert read.equals(WHOLE.slice(start, stop - start))
    assert all(batch.num_rows == size for batch in batches[:-1])


@given(st.sets(st.integers(0, sum(SIZES) - 1)))
def test_take_gives_the_rows_at_the_offsets(wanted: set[int]) -> None:
    offsets = np.array(sorted(wanted), np.uint64)
    taken = pa.Table.from_batches([FILE.take(offsets)])
    assert taken.equals(WHOLE.take(pa.array(offsets)))


def test_a_batch_has_the_schema_of_the_file() -> None:
    (batch,) = FILE.batches(start=0, stop=3, batch_rows=3)
    assert batch.schema.equals(FILE.schema, check_metadata=True)


def test_names_nullability_and_metadata_come_from_the_table_schema() -> None:
    table = legacy_table([pa.record_batch({"old": [1, 2]})])
    (field,) = table.fields
    renamed = replace(field, name="new", nullable=False, metadata=FrozenMap({"unit": b"m"}))
    reader = LegacyFile.open(table.source(), table.file, (renamed,), manifest=None)
    expected = pa.field("new", pa.int64(), nullable=False, metadata={"unit": "m"})
    assert reader.schema.equals(pa.schema([expected]), check_metadata=True)


def test_columns_come_in_the_order_asked_for() -> None:
    table = grouped([4])
    fields = (table.fields[2], table.fields[0])
    reader = LegacyFile.open(table.source(), table.file, fields, manifest=None)
    (batch,) = reader.batches(start=0, stop=4, batch_rows=4)
    assert batch.equals(rows(0, 4).select(["s", "i"]))


def test_some_members_of_a_struct_can_be_read() -> None:
    struct = pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    table = legacy_table([pa.record_batch({"s": struct})])
    (field,) = table.fields
    part = field.with_children(field.children[1:])
    reader = LegacyFile.open(table.source(), table.file, (part,), manifest=None)
    (batch,) = reader.batches(start=0, stop=2, batch_rows=2)
    assert batch.column(0).to_pylist() == [{"y": "a"}, {"y": "b"}]


def test_no_columns_still_have_rows() -> None:
    table = grouped([4, 3])
    reader = LegacyFile.open(table.source(), table.file, (), manifest=None)
    assert [b.num_rows for b in reader.batches(start=0, stop=7, batch_rows=5)] == [5, 2]


def test_a_file_without_rows_has_no_batches() -> None:
    assert list(opened(grouped([0])).batches(start=0, stop=0, batch_rows=5)) == []


@pytest.mark.parametrize(("start", "stop", "size"), [(-1, 2, 1), (3, 2, 1), (0, 19, 1), (0, 1, 0)])
def test_rows_that_are_not_there_are_refused(start: int, stop: int, size: int) -> None:
    with pytest.raises(InvalidRequestError):
        next(FILE.batches(start=start, stop=stop, batch_rows=size))


@pytest.mark.parametrize("offsets", [[18], [3, 3], [4, 3], [2**64 - 1]])
def test_offsets_that_do_not_ascend_below_the_row_count_are_refused(offsets: list[int]) -> None:
    with pytest.raises(InvalidRequestError):
        FILE.take(np.array(offsets, np.uint64))


def test_a_dictionary_cannot_be_read_without_a_manifest() -> None:
    table = grouped([4])
    with pytest.raises(InvalidRequestError, match="manifest"):
        LegacyFile.open(table.source(), table.file, table.fields, manifest=None)


def test_a_dictionary_outside_the_manifest_is_damage_of_the_manifest() -> None:
    table = grouped([4])
    short = MemorySource(table.manifest[:-8], name="1.manifest")
    with pytest.raises(CorruptTableError, match=r"1\.manifest is damaged"):
        LegacyFile.open(table.source(), table.file, table.fields, manifest=short)


def test_a_schema_that_does_not_place_its_dictionary_is_damaged() -> None:
    table = grouped([4])
    lost = replace(table.fields[4], dictionary=None)
    with pytest.raises(CorruptTableError, match="dictionary position for 'd'"):
        LegacyFile.open(table.source(), table.file, (lost,), manifest=table.manifest_source())


def test_damage_names_the_file() -> None:
    table = grouped([4])
    with pytest.raises(CorruptTableError, match=r"f\.lance is damaged"):
        opened(table, MemorySource(table.data[:-1]))


def test_a_small_file_is_read_once() -> None:
    table = grouped([50, 50])
    source = table.source()
    list(opened(table, source).batches(start=0, stop=100, batch_rows=7))
    assert len(source.reads) == 1


def large() -> LegacyTable:
    count = 200_000
    numbers = pa.array(np.arange(count), pa.int64())
    return legacy_table(
        [pa.record_batch({"n": numbers, "t": pa.array([f"{n:09}" for n in range(count)])})] * 2
    )


LARGE = large()


def test_a_take_of_few_rows_does_not_read_their_pages() -> None:
    source = LARGE.source()
    reader = opened(LARGE, source)
    opened_with = source.bytes_read
    taken = reader.take(np.array([5, 100_000, 199_999, 300_000], np.uint64))
    assert taken.column(0).to_pylist() == [5, 100_000, 199_999, 100_000]
    assert taken.column(1).to_pylist() == [f"{n:09}" for n in (5, 100_000, 199_999, 100_000)]
    assert source.bytes_read - opened_with < 4 * 100


def test_a_batch_takes_a_read_per_column_and_kind_of_page() -> None:
    source = LARGE.source()
    reader = opened(LARGE, source)
    next(reader.batches(start=50_000, stop=60_000, batch_rows=10_000))
    assert len(source.reads) == 1 + 3


def test_a_batch_does_not_read_beyond_its_rows() -> None:
    source = LARGE.source()
    reader = opened(LARGE, source)
    opened_with = source.bytes_read
    next(reader.batches(start=50_000, stop=60_000, batch_rows=10_000))
    assert source.bytes_read - opened_with <= 10_000 * (8 + 8 + 9) + 8


def test_small_groups_share_reads() -> None:
    table = legacy_table([rows(n, n + 50) for n in range(0, 6000, 50)])
    source = table.source()
    reader = opened(table, source)
    opening = len(source.reads)
    next(reader.batches(start=0, stop=3000, batch_rows=3000))
    assert len(source.reads) - opening == 1
