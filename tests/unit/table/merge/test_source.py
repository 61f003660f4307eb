from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelake.table.merge.source import SourceRows, read_source, split, take_rows

TABLE = pa.table({"a": range(1000), "b": [f"text {i}" for i in range(1000)]})


def _reader() -> pa.RecordBatchReader:
    return TABLE.to_reader(max_chunksize=100)


@pytest.fixture(params=[1 << 30, 100], ids=["in memory", "on disk"])
def source(request: pytest.FixtureRequest) -> object:
    with read_source(_reader(), memory_bytes=request.param) as rows:
        yield rows


def test_all_rows_are_kept(source: SourceRows) -> None:
    assert source.num_rows == 1000
    assert source.table().equals(TABLE)


def test_rows_can_be_read_by_number_more_than_once(source: SourceRows) -> None:
    numbers = np.array([999, 0, 500, 0])
    for _ in range(2):
        (batch,) = source.batches(numbers, ["b"])
        assert batch.to_pydict() == {"b": ["text 999", "text 0", "text 500", "text 0"]}


def test_a_column_can_be_left_out(source: SourceRows) -> None:
    left = source.without("a")
    assert left.schema.names == ["b"]
    assert left.table().equals(TABLE.select(["b"]))
    assert next(left.batches(np.array([3]))).to_pydict() == {"b": ["text 3"]}


def test_no_columns_still_have_a_length(source: SourceRows) -> None:
    assert [batch.num_rows for batch in source.batches(np.array([1, 5, 7]), [])] == [3]


def test_rows_can_be_pickled(source: SourceRows) -> None:
    assert pickle.loads(pickle.dumps(source)).table().equals(TABLE)


def test_a_batch_has_no_more_rows_than_fit_in_its_bytes() -> None:
    wide = pa.table({"a": [b"x" * (8 << 20)] * 5})
    with read_source(wide.to_reader()) as rows:
        assert rows.batch_rows < 3
        assert sum(b.num_rows for b in rows.batches(np.arange(5))) == 5


def test_a_file_on_disk_is_gone_afterwards() -> None:
    with read_source(_reader(), memory_bytes=100) as rows:
        path = rows.rows
        assert isinstance(path, Path)
        assert path.exists()
    assert not path.exists()


def test_an_empty_source_has_a_schema() -> None:
    with read_source(TABLE.slice(0, 0).to_reader()) as rows:
        assert rows.num_rows == 0
        assert rows.table().schema == TABLE.schema


def test_numbers_are_cut_into_runs() -> None:
    assert [part.tolist() for part in split(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("numbers", [[3, 4, 5], [5, 4, 3], [3, 3, 5], [], [9]])
def test_rows_are_taken_in_the_order_asked_for(numbers: list[int]) -> None:
    found = take_rows(TABLE, np.array(numbers, dtype=np.int64))
    assert found.column("a").to_pylist() == numbers
