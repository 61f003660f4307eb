from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.format.arrow_schema import from_arrow
from lancelake.table.rows import assigned, bind_assignments

ARROW = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.dictionary(pa.int8(), pa.string())),
        ("d", pa.date32()),
    ]
)
SCHEMA = from_arrow(ARROW)
ROWS = pa.RecordBatch.from_pylist(
    [{"a": 1, "b": "x", "c": "k", "d": None}, {"a": 2, "b": None, "c": None, "d": None}],
    schema=ARROW,
)


def _changed(updates: dict[str, str]) -> list[dict[str, object]]:
    return assigned(ROWS, bind_assignments(updates, SCHEMA)).to_pylist()


def test_all_expressions_see_the_old_values() -> None:
    found = _changed({"a": "a + 1", "b": "cast(a as varchar)"})
    assert [(row["a"], row["b"]) for row in found] == [(2, "1"), (3, "2")]


def test_a_value_is_cast_to_the_type_of_its_column() -> None:
    found = assigned(ROWS, bind_assignments({"a": "2.0 * a", "d": "'2024-02-29'"}, SCHEMA))
    assert found.schema.field("a").type == pa.int32()
    assert str(found.column("d")[0]) == "2024-02-29"


def test_a_null_can_be_assigned() -> None:
    assert [row["b"] for row in _changed({"b": "NULL"})] == [None, None]


def test_a_dictionary_column_takes_plain_values() -> None:
    assert [row["c"] for row in _changed({"c": "concat(b, '!')"})] == ["x!", "!"]


def test_assignments_can_be_pickled() -> None:
    made = pickle.loads(pickle.dumps(bind_assignments({"a": "a * 10"}, SCHEMA)))
    assert assigned(ROWS, made).column("a").to_pylist() == [10, 20]


@pytest.mark.parametrize(
    ("updates", "kind", "problem"),
    [
        ({}, InvalidRequestError, "No updates provided"),
        ({"missing": "1"}, InvalidRequestError, "'missing' does not exist.*a, b, c, d"),
        ({"a": "missing + 1"}, InvalidExpressionError, "missing"),
        ({"a": "'no number'"}, InvalidExpressionError, "no number"),
        ({"a": "a +"}, InvalidExpressionError, "a [+]"),
    ],
)
def test_what_cannot_be_assigned_is_refused(
    updates: dict[str, str], kind: type[Exception], problem: str
) -> None:
    with pytest.raises(kind, match=problem):
        bind_assignments(updates, SCHEMA)
