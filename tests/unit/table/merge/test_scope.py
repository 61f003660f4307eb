from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from lancelake.errors import InvalidExpressionError
from lancelake.format.frozen import FrozenMap
from lancelake.table.merge.clauses import SOURCE, TARGET, Scope

ROWS = {
    TARGET: pa.record_batch({"id": [1, 2], "w": [10, 20], "only_mine": ["a", "b"]}),
    SOURCE: pa.record_batch({"id": [1, 2], "w": [15, 15], "extra": [True, False]}),
}
SCOPE = Scope(sides=FrozenMap({side: rows.schema for side, rows in ROWS.items()}))


def test_a_condition_names_columns_of_both_sides() -> None:
    found = SCOPE.condition("source.w > target.w")
    assert found.holds(ROWS).to_pylist() == [True, False]
    assert found.needs == {TARGET: ("w",), SOURCE: ("w",)}


def test_a_column_that_one_side_has_needs_no_side() -> None:
    found = SCOPE.condition("extra AND only_mine = 'a'")
    assert found.holds(ROWS).to_pylist() == [True, False]
    assert found.needs == {TARGET: ("only_mine",), SOURCE: ("extra",)}


def test_a_condition_may_look_at_nothing() -> None:
    found = SCOPE.condition("1 = 1")
    assert found.needs == {TARGET: (), SOURCE: ()}
    assert found.holds(ROWS).to_pylist() == [True, True]


def test_a_value_is_cast_to_the_type_of_its_column() -> None:
    found = SCOPE.value("source.w + target.w", pa.float32())
    assert found.of(ROWS).type == pa.float32()
    assert found.of(ROWS).to_pylist() == [25.0, 35.0]


def test_conditions_and_values_can_be_pickled() -> None:
    condition, value = SCOPE.condition("extra"), SCOPE.value("source.w", pa.int64())
    condition, value = pickle.loads(pickle.dumps((condition, value)))
    assert condition.holds(ROWS).to_pylist() == [True, False]
    assert value.of(ROWS).to_pylist() == [15, 15]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("w > 1", "column w is ambiguous: write target.w or source.w"),
        ("source.missing = 1", "missing"),
        ("missing = 1", "missing"),
        ("source.w + 1", "boolean"),
    ],
)
def test_what_is_no_condition_on_both_sides_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidExpressionError, match=problem):
        SCOPE.condition(text)


NAMED_AS_SIDES = {
    TARGET: pa.record_batch({"id": [1, 2], "source": [10, 20], "w": [1, 1]}),
    SOURCE: pa.record_batch({"id": [1, 2], "Target": [15, 15], "w": [2, 2]}),
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("target.source < 15", [True, False]),
        ("source < 15", [True, False]),
        ("target > 1 AND source.target > source", [True, False]),
        ("source.w > target.w AND target.id = 2", [False, True]),
    ],
)
def test_columns_may_be_named_as_the_sides(text: str, holds: list[bool]) -> None:
    sides = FrozenMap({side: rows.schema for side, rows in NAMED_AS_SIDES.items()})
    assert Scope(sides=sides).condition(text).holds(NAMED_AS_SIDES).to_pylist() == holds


def test_a_column_named_as_a_side_that_both_have_needs_its_side() -> None:
    schema = pa.schema([("source", pa.int64())])
    scope = Scope(sides=FrozenMap({TARGET: schema, SOURCE: schema}))
    with pytest.raises(InvalidExpressionError, match=r"write target\.source or"):
        scope.condition("source > 1")


def test_marks_of_a_primary_key_and_field_ids_do_not_matter() -> None:
    marks = {"lance-schema:unenforced-primary-key": "true", "lance:field_id": "7"}
    member = pa.field("k", pa.int64(), nullable=False, metadata=marks)
    nested = pa.field("s", pa.struct([member]), nullable=False)
    schema = pa.schema([nested])
    scope = Scope(sides=FrozenMap({TARGET: schema, SOURCE: schema}))
    assert scope.condition("target.s.k < source.s.k").needs == {TARGET: ("s",), SOURCE: ("s",)}
