"""Stored vectors as queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake
from lancelake.errors import ColumnTypeError, InvalidRequestError
from lancelake.scan.search.recall import VectorColumn, nearest_to_row, sampled_vectors
from tests.support.read_tables import open_source
from tests.support.search_tables import article_vectors, write_articles

PAIR = pa.list_(pa.float32(), 2)


def test_the_vector_of_a_row_is_its_query(tmp_path: Path) -> None:
    source = open_source(write_articles(tmp_path / "t.lance").uri)
    found = nearest_to_row(source, "vector", (1 << 32) + 5)
    np.testing.assert_array_equal(found.queries, article_vectors()[25:26])
    assert not found.has_several


def test_the_vectors_of_a_multivector_row_are_one_query(tmp_path: Path) -> None:
    rows = pa.table({"m": pa.array([[[1.0, 2.0], [3.0, 4.0]]], pa.list_(PAIR))})
    source = open_source(lancelake.write_dataset(rows, str(tmp_path / "t.lance")).uri)
    found = nearest_to_row(source, "m", 0)
    assert found.queries.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.has_several


def test_a_row_without_a_vector_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"v": pa.array([None, [1.0, 2.0]], PAIR)})
    source = open_source(lancelake.write_dataset(rows, str(tmp_path / "t.lance")).uri)
    with pytest.raises(InvalidRequestError, match="row 0 has no vector"):
        nearest_to_row(source, "v", 0)


def test_a_deleted_row_is_refused(tmp_path: Path) -> None:
    made = write_articles(tmp_path / "t.lance")
    made.delete("id = 3")
    with pytest.raises(InvalidRequestError, match="no row with the id 3"):
        nearest_to_row(open_source(made.uri), "vector", 3)


def test_a_column_without_vectors_is_refused(tmp_path: Path) -> None:
    source = open_source(write_articles(tmp_path / "t.lance").uri)
    with pytest.raises(ColumnTypeError, match="'text' has no vectors: its type is string"):
        VectorColumn.of(source, "text")


def test_sampled_rows_are_counted_without_deleted_ones(tmp_path: Path) -> None:
    made = write_articles(tmp_path / "t.lance")
    made.delete("id < 2")
    column = VectorColumn.of(open_source(made.uri), "vector")
    found = sampled_vectors(column, np.array([0, 30], dtype=np.uint64))
    np.testing.assert_array_equal(found, article_vectors()[[2, 32]])


def test_vectors_in_structs_are_found(tmp_path: Path) -> None:
    inner = pa.StructArray.from_arrays([pa.array([[1.0, 2.0]], PAIR)], names=["v"])
    made = lancelake.write_dataset(pa.table({"s": inner}), str(tmp_path / "t.lance"))
    column = VectorColumn.of(open_source(made.uri), "s.v")
    assert sampled_vectors(column, np.array([0], dtype=np.uint64)).tolist() == [[1.0, 2.0]]
    assert not column.is_indexed
