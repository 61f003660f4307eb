from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.index.text.text_columns import documents, is_document

LISTS = [
    pa.list_(pa.string()),
    pa.list_(pa.large_string()),
    pa.large_list(pa.string()),
    pa.large_list(pa.large_string()),
]


@pytest.mark.parametrize("dtype", LISTS, ids=str)
def test_strings_of_a_list_are_joined_without_its_nulls(dtype: pa.DataType) -> None:
    rows = pa.array([["a b", None, "", "c"], [], [None], ["d"]], dtype)
    assert documents(rows).to_pylist() == ["a b  c", "", "", "d"]


def test_a_slice_of_lists_has_the_texts_of_its_rows() -> None:
    rows = pa.array([["a"], ["b", "c"], ["d"]]).slice(1, 1)
    assert documents(rows).to_pylist() == ["b c"]


def test_strings_are_documents_as_they_are() -> None:
    rows = pa.array(["a b", "c"])
    assert documents(rows) is rows


@pytest.mark.parametrize("dtype", [*LISTS, pa.string(), pa.large_string()], ids=str)
def test_rows_of_strings_are_documents(dtype: pa.DataType) -> None:
    assert is_document(dtype)


@pytest.mark.parametrize(
    "dtype", [pa.list_(pa.int32()), pa.binary(), pa.list_(pa.list_(pa.string()))]
)
def test_other_rows_are_no_documents(dtype: pa.DataType) -> None:
    assert not is_document(dtype)
