"""Columns of texts are found by paths that leave elements of lists out."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import ColumnNotFoundError, ColumnTypeError
from lancelake.index.text.text_columns import DocumentColumn, find_text_column, text_column_of

PART = pa.struct([("t", pa.string()), ("u", pa.list_(pa.large_string())), ("n", pa.int32())])
TYPES = {
    "x": pa.string(),
    "l": pa.list_(pa.string()),
    "s": pa.struct([("y", pa.string()), ("d", pa.large_list(PART))]),
    "a": pa.list_(pa.list_(PART)),
}


@pytest.fixture
def ds(tmp_table: str) -> lance.LanceDataset:
    return lance.write_dataset(pa.schema(list(TYPES.items())).empty_table(), tmp_table)


def column(ds: lance.LanceDataset, path: str) -> DocumentColumn | None:
    return find_text_column(ds._snapshot.manifest.schema, path)


@pytest.mark.parametrize(
    ("path", "source"),
    [("x", "x"), ("l", "l"), ("s.y", "s.y"), ("s.d.t", "s.d"), ("s.d.u", "s.d"), ("a.t", "a")],
)
def test_a_path_leads_through_lists(ds: lance.LanceDataset, path: str, source: str) -> None:
    found = column(ds, path)
    assert found is not None
    assert (found.path, found.source) == (path, source)
    assert text_column_of(ds._snapshot.manifest.schema, found.trail[-1].id) == found


@pytest.mark.parametrize("path", ["s.d.item.t", "a.item.t", "l.item", "s.d.z", "x.t"])
def test_elements_have_no_name(ds: lance.LanceDataset, path: str) -> None:
    assert column(ds, path) is None
    with pytest.raises(ColumnNotFoundError):
        ds.create_scalar_index(path, "INVERTED")


def test_numbers_in_lists_are_no_texts(ds: lance.LanceDataset) -> None:
    with pytest.raises(ColumnTypeError, match=r"'s\.d\.n' of type int32"):
        ds.create_scalar_index("s.d.n", "INVERTED")


def test_all_strings_of_a_row_are_its_texts(ds: lance.LanceDataset) -> None:
    found = column(ds, "a.u")
    assert found is not None
    one, two = {"t": None, "u": ["p", None], "n": 1}, {"t": "x", "u": ["q"], "n": 2}
    values = pa.array([[], [[one], None, [two, None]], None, [[two]]], TYPES["a"])
    for rows in (values, values.slice(1)):
        texts = found.documents(rows)
        assert texts.type == found.dtype
        assert texts.to_pylist() == [[], ["p", None, "q"], [], ["q"]][4 - len(rows) :]
