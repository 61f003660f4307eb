from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.pylance import LanceDataset
from lancelake.pylance._dataset.arguments import os_errors

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
ONE = ROWS.slice(0, 1)

VALUE_ERRORS: dict[str, Callable[[LanceDataset], object]] = {
    "column": lambda t: t.to_table(columns=["nme"]),
    "filter": lambda t: t.to_table(filter="nme = 1"),
    "limit": lambda t: t.to_table(limit=-1),
    "update": lambda t: t.update({"nme": "1"}),
    "drop": lambda t: t.drop_columns(["nme"]),
    "alteration": lambda t: t.alter_columns({"path": "id", "nme": "x"}),  # type: ignore[typeddict-unknown-key]
    "merge key": lambda t: t.merge_insert("nme"),
    "merge without clauses": lambda t: t.merge_insert("id").execute(ONE),
    "sql": lambda t: t.sql("SELECT nme FROM dataset").build().to_batch_records(),
}
OS_ERRORS: dict[str, Callable[[LanceDataset], object]] = {
    "delete": lambda t: t.delete("nme = 1"),
    "count": lambda t: t.count_rows(filter="nme = 1"),
    "add": lambda t: t.add_columns({"x": "nme + 1"}),
    "alter": lambda t: t.alter_columns({"path": "nme", "name": "x"}),
    "merge columns": lambda t: t.merge(ONE, "nme"),
    "field metadata": lambda t: t.update_field_metadata({"nme": {}}),
    "ambiguous merge": lambda t: (
        t.merge_insert("id").when_matched_update_all().execute(pa.concat_tables([ONE, ONE]))
    ),
    "cleanup": lambda t: t.cleanup_old_versions(retain_versions=0),
    "commit": lambda t: LanceDataset.commit(
        t, lance.LanceOperation.Merge([], t.schema), read_version=1
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "orders")


@pytest.mark.parametrize("call", VALUE_ERRORS.values(), ids=VALUE_ERRORS)
def test_an_invalid_request_is_a_value_error_only(
    table: LanceDataset, call: Callable[[LanceDataset], object]
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(table)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, OSError)


@pytest.mark.parametrize("call", OS_ERRORS.values(), ids=OS_ERRORS)
def test_an_invalid_request_is_an_os_error_where_pylance_raises_one(
    table: LanceDataset, call: Callable[[LanceDataset], object]
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(table)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("call", [*VALUE_ERRORS.values(), *OS_ERRORS.values()])
def test_an_invalid_request_names_the_table_once(
    table: LanceDataset, call: Callable[[LanceDataset], object]
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(table)
    assert str(caught.value).count(table.uri) == 1


def test_an_unknown_column_is_answered_with_a_close_one(table: LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match=r"Did you mean name\?"):
        table.to_table(columns=["nme"])


def test_the_class_and_the_cause_stay() -> None:
    cause = RuntimeError("why")
    with pytest.raises(InvalidExpressionError) as caught, os_errors():
        raise InvalidExpressionError("wrong", action="Do it.", text="x") from cause
    assert caught.value.__cause__ is cause
    assert str(caught.value) == "wrong. Do it."
    assert caught.value.facts == {"text": "x"}
