"""Pages of every type come back as the arrays they were written from."""

from __future__ import annotations

import datetime
import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.legacy.legacy_file import (
    LegacyColumn,
    LegacyFile,
    Page,
    Runs,
    decode,
    decode_values,
)
from lancelake.data.legacy.legacy_layout import LegacyReads, PageColumn
from lancelake.errors import CorruptTableError, UnsupportedError
from tests.support.legacy_tables import MemorySource, legacy_table

TIME = datetime.datetime(2024, 2, 29, 12, 30)
PAIR = pa.struct([pa.field("n", pa.int32()), pa.field("t", pa.string())])
EXACT: dict[str, tuple[pa.DataType, list[object]]] = {
    "int8": (pa.int8(), [1, -2, 3]),
    "uint64": (pa.uint64(), [1, 2**64 - 1]),
    "half": (pa.float16(), [1.5, -0.25]),
    "double": (pa.float64(), [1.5, -0.25]),
    "bool": (pa.bool_(), [True, False, True] * 7),
    "date64": (pa.date64(), [TIME.date()]),
    "time64": (pa.time64("us"), [TIME.time()]),
    "timestamp": (pa.timestamp("ms", "Europe/Berlin"), [1, 2, 3]),
    "duration": (pa.duration("ns"), [1, 2, 3]),
    "decimal128": (pa.decimal128(9, 2), [decimal.Decimal("1.25"), decimal.Decimal("-7.00")]),
    "decimal256": (pa.decimal256(60, 1), [decimal.Decimal("1.5")]),
    "fixed binary": (pa.binary(3), [b"abc", b"xyz"]),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]]),
    "bits": (pa.list_(pa.bool_(), 3), [[True, False, True], [False, False, True]] * 3),
    "matrix": (pa.list_(pa.list_(pa.int8(), 2), 2), [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    "string": (pa.string(), ["a", None, "bc"]),
    "large string": (pa.large_string(), ["ä", None, "bc"]),
    "binary": (pa.binary(), [b"\xff", None]),
    "large binary": (pa.large_binary(), [b"\xff", None]),
    "null": (pa.null(), [None, None]),
    "list": (pa.list_(pa.int16()), [[1, 2], [], [3]]),
    "large list": (pa.large_list(pa.string()), [["a", None], [], ["b"]]),
    "list of lists": (pa.list_(pa.list_(pa.int8())), [[[1], []], [], [[2, 3]]]),
    "list of structs": (pa.list_(PAIR), [[{"n": 1, "t": "x"}], [], [{"n": 2, "t": None}]]),
    "struct": (PAIR, [{"n": 1, "t": "x"}, {"n": 2, "t": None}]),
    "struct of list": (pa.struct([("l", pa.list_(PAIR))]), [{"l": [{"n": 1, "t": "x"}]}]),
    "empty struct": (pa.struct([]), [{}, {}]),
}
INEXACT: dict[str, tuple[pa.DataType, list[object], list[object]]] = {
    "number": (pa.int32(), [1, None, 3], [1, 0, 3]),
    "bool": (pa.bool_(), [True, None], [True, False]),
    "empty string": (pa.string(), ["a", "", None], ["a", None, None]),
    "empty binary": (pa.large_binary(), [b"a", b""], [b"a", None]),
    "list": (pa.list_(pa.int8()), [[1], None, [None]], [[1], [], [0]]),
    "struct": (PAIR, [{"n": 1, "t": "x"}, None], [{"n": 1, "t": "x"}, {"n": 0, "t": None}]),
}


def read_back(batch: pa.RecordBatch) -> pa.RecordBatch:
    table = legacy_table([batch])
    reader = LegacyFile.open(
        table.source(), table.file, table.fields, manifest=table.manifest_source()
    )
    (read,) = reader.batches(start=0, stop=reader.num_rows, batch_rows=100)
    read.validate(full=True)
    return read


def column(array: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"c": array})


@pytest.mark.parametrize("name", EXACT)
def test_values_come_back(name: str) -> None:
    dtype, values = EXACT[name]
    assert read_back(column(pa.array(values, dtype))).equals(column(pa.array(values, dtype)))


@pytest.mark.parametrize("name", EXACT)
def test_rows_in_the_middle_come_back(name: str) -> None:
    dtype, values = EXACT[name]
    array = pa.array(values * 5, dtype)
    table = legacy_table([column(array)])
    reader = LegacyFile.open(table.source(), table.file, table.fields, manifest=None)
    rows = np.array([1, 2, len(array) - 1], np.uint64)
    assert reader.take(rows).column(0).equals(array.take(pa.array(rows)))


@pytest.mark.parametrize("name", INEXACT)
def test_nulls_become_what_the_format_can_say(name: str) -> None:
    dtype, values, expected = INEXACT[name]
    assert read_back(column(pa.array(values, dtype))).column(0).to_pylist() == expected


def test_empty_text_of_a_required_field_is_not_null() -> None:
    schema = pa.schema([pa.field("c", pa.string(), nullable=False)])
    batch = pa.record_batch([pa.array(["a", ""])], schema=schema)
    assert read_back(batch).equals(batch)


def test_lists_may_begin_behind_their_first_item() -> None:
    array = pa.array([["a"], ["b", "c"], [], ["d"]]).slice(1, 2)
    assert read_back(column(array)).equals(column(array))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["x", None, "zz"]),
        pa.array([b"x", b"y", b"z"]),
        pa.array(["x", "y", "z"], pa.large_string()),
        pa.array([1, 2, 3], pa.int64()),
    ],
)
def test_dictionary_values_come_from_the_manifest(values: pa.Array) -> None:
    indices = pa.array([2, 0, 1, 1], pa.int8())
    words = pa.DictionaryArray.from_arrays(indices, values)
    assert read_back(column(words)).equals(column(words))


def test_dictionaries_inside_lists_and_structs_come_back() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["x", "y"]))
    lists = pa.ListArray.from_arrays([0, 2], words)
    batch = column(pa.StructArray.from_arrays([lists], ["l"]))
    assert read_back(batch).equals(batch)


def test_an_index_past_the_dictionary_is_damage() -> None:
    batch = column(pa.array([0, 5], pa.int8()))
    table = legacy_table([batch])
    source = table.source()
    layout_pages = PageColumn(positions=np.array([0]), lengths=np.array([2]))
    words = LegacyColumn(
        name="c",
        type=pa.dictionary(pa.int8(), pa.string()),
        nullable=True,
        pages=layout_pages,
        dictionary=pa.array(["only"]),
    )
    reads = LegacyReads(source, size_bytes=source.size_bytes())
    with pytest.raises(CorruptTableError, match="dictionary of 1 values"):
        reads.run(decode(words, 0, Runs.between(0, 2), file_bytes=source.size_bytes()))


def page_of(data: bytes, *, length: int, position: int = 0) -> tuple[Page, LegacyReads]:
    page = Page(field="c", position=position, length=length, file_bytes=len(data))
    return page, LegacyReads(MemorySource(data), size_bytes=len(data))


@pytest.mark.parametrize(
    ("dtype", "position", "length"),
    [
        (pa.int64(), 0, 9),
        (pa.int64(), -8, 1),
        (pa.int64(), 0, -1),
        (pa.int8(), 2**63 - 1, 1),
        (pa.bool_(), 0, 8 * 64 + 1),
        (pa.list_(pa.int8(), 2**30), 0, 1),
        (pa.string(), 0, 2**61),
    ],
)
def test_a_page_outside_the_file_is_damage(dtype: pa.DataType, position: int, length: int) -> None:
    page, reads = page_of(bytes(64), position=position, length=length)
    with pytest.raises(CorruptTableError):
        reads.run(decode_values(dtype, page, Runs.between(0, 1)))


def test_rows_outside_the_page_are_damage() -> None:
    page, reads = page_of(bytes(64), length=2)
    with pytest.raises(CorruptTableError, match="2 values"):
        reads.run(decode_values(pa.int8(), page, Runs.between(0, 3)))


@pytest.mark.parametrize("bounds", [[3, 1], [-2, 1], [0, 999], [2**63 - 1, 2**63 - 1]])
def test_text_outside_the_file_is_damage(bounds: list[int]) -> None:
    page, reads = page_of(np.array(bounds, "<i8").tobytes(), length=1)
    with pytest.raises(CorruptTableError):
        reads.run(decode_values(pa.string(), page, Runs.between(0, 1)))


def test_text_that_is_not_utf8_is_damage() -> None:
    page, reads = page_of(np.array([0, 1], "<i8").tobytes() + b"", length=1)
    assert reads.run(decode_values(pa.binary(), page, Runs.between(0, 1))).to_pylist() == [b"\0"]
    page, reads = page_of(b"\xff" + np.array([0, 1], "<i8").tobytes(), position=1, length=1)
    with pytest.raises(CorruptTableError, match="UTF-8"):
        reads.run(decode_values(pa.string(), page, Runs.between(0, 1)))


@pytest.mark.parametrize(
    "dtype",
    [pa.binary(0), pa.list_(pa.int8(), 0), pa.list_(pa.string(), 2), pa.map_(pa.int8(), pa.int8())],
)
def test_types_that_legacy_files_cannot_hold_are_refused(dtype: pa.DataType) -> None:
    page, reads = page_of(bytes(64), length=1)
    with pytest.raises(UnsupportedError, match="do not support"):
        reads.run(decode_values(dtype, page, Runs.between(0, 1)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_runs_keep_their_rows_when_joined(steps: list[tuple[int, int]]) -> None:
    starts: list[int] = []
    stops: list[int] = []
    rows: list[int] = []
    position = 0
    for gap, length in steps:
        starts.append(position + gap)
        position += gap + length
        stops.append(position)
        rows += range(starts[-1], position)
    runs = Runs.of(np.array(starts, np.int64), np.array(stops, np.int64))
    pairs = list(zip(runs.starts.tolist(), runs.stops.tolist(), strict=True))
    assert [row for start, stop in pairs for row in range(start, stop)] == rows
    assert all(a[1] < b[0] for a, b in itertools.pairwise(pairs))
