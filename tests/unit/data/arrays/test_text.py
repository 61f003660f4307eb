"""Strings that are not UTF-8 are found before they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError, SchemaMismatchError
from lancelake.pylance.fragment import LanceFragment
from tests.support.raw_text import strings

BAD = strings(b"ok", b"\xff\x00", None, b"a\xc3")
LARGE = strings(b"ok", b"\xff", dtype=pa.large_string())
SHAPES: dict[str, pa.Array] = {
    "string": BAD,
    "large string": LARGE,
    "slice": BAD.slice(1),
    "dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0]), LARGE.cast(pa.large_string())
    ),
    "list": pa.ListArray.from_arrays(pa.array([0, 2, 4]), BAD),
    "struct": pa.StructArray.from_arrays([BAD], ["member"]),
    "map": pa.MapArray.from_arrays(pa.array([0, 1]), strings(b"key"), strings(b"\xff")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_write_of_invalid_text_is_refused(shape: str, tmp_path: Path) -> None:
    table = pa.table({"c": SHAPES[shape]})
    with pytest.raises(SchemaMismatchError, match="not UTF-8"):
        lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    assert not list(tmp_path.rglob("*.lance"))


def test_values_under_a_null_or_outside_a_slice_do_not_count(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"c": BAD.slice(0, 1)}), tmp_path / "t")
    assert ds.to_table()["c"].to_pylist() == ["ok"]


@pytest.mark.parametrize("shape", ["string", "large string", "list", "struct"])
def test_invalid_bytes_are_replaced_when_asked(shape: str, tmp_path: Path) -> None:
    table = pa.table({"c": SHAPES[shape]})
    ds = lance.write_dataset(table, tmp_path / "t", invalid_utf8="replace")
    text = str(ds.to_table()["c"].to_pylist())
    assert "\ufffd" in text
    assert "ok" in text


def test_valid_text_and_nulls_stay_when_others_are_replaced(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"c": BAD}), tmp_path / "t", invalid_utf8="replace")
    assert ds.to_table()["c"].to_pylist() == ["ok", "\ufffd\x00", None, "a\ufffd"]


def test_another_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid_utf8 must be one of error, replace"):
        lance.write_dataset(pa.table({"c": BAD}), tmp_path / "t", invalid_utf8="trust")


@pytest.fixture
def ds(tmp_path: Path) -> lance.LanceDataset:
    """Return a table of two rows."""
    return lance.write_dataset(pa.table({"id": [1, 2], "c": ["a", "b"]}), tmp_path / "t")


ROWS = pa.table({"id": [1, 3], "c": strings(b"\xff", b"ok")})
CHANGES: dict[str, Any] = {
    "append": lambda ds: ds.insert(ROWS),
    "overwrite": lambda ds: ds.insert(ROWS, mode="overwrite"),
    "merge": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS)
    ),
    "merge columns": lambda ds: ds.merge(ROWS.rename_columns(["id", "d"]), "id"),
    "add columns": lambda ds: ds.add_columns(ROWS.select(["c"]).rename_columns(["d"]).to_reader()),
    "fragment": lambda ds: LanceFragment.create(ds.uri, ROWS),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_brings_invalid_text_in(change: str, ds: lance.LanceDataset) -> None:
    with pytest.raises(SchemaMismatchError, match="not UTF-8"):
        CHANGES[change](ds)
    assert lance.dataset(ds.uri).version == 1


@lance.batch_udf()
def invalid_column(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a column of strings that are not UTF-8."""
    return pa.record_batch([strings(*[b"\xff"] * batch.num_rows)], ["d"])


def test_no_function_brings_invalid_text_in(ds: lance.LanceDataset) -> None:
    with pytest.raises(SchemaMismatchError, match="column d has a string that is not UTF-8"):
        ds.add_columns(invalid_column)
    assert lance.dataset(ds.uri).version == 1


@pytest.mark.parametrize("expression", ["CAST(X'FF00' AS STRING)", "arrow_cast(X'FF00', 'Utf8')"])
@pytest.mark.parametrize("act", ["update", "add columns"])
def test_no_expression_brings_invalid_text_in(
    act: str, expression: str, ds: lance.LanceDataset
) -> None:
    with pytest.raises(InvalidExpressionError, match="non UTF-8"):
        if act == "update":
            ds.update({"c": expression}, where="id = 1")
        else:
            ds.add_columns({"d": expression})
    assert lance.dataset(ds.uri).version == 1
