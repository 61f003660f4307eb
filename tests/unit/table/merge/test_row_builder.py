from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.frozen import FrozenMap
from lancelake.table.merge.clauses import SOURCE, TARGET, Scope, ScopedValue
from lancelake.table.merge.write import (
    CopiedColumn,
    Null,
    cast_to_field,
    compute_columns,
    copy_columns,
)

ARROW = pa.schema([("id", pa.int64()), ("v", pa.string()), ("w", pa.float64())])
SCHEMA = from_arrow(ARROW)
MINE = pa.record_batch({"id": [1], "v": ["mine"], "w": [0.5]}, schema=ARROW)
THEIRS = pa.record_batch({"w": [9.0], "id": [1]})
SCOPE = Scope(sides=FrozenMap({TARGET: ARROW, SOURCE: THEIRS.schema}))


def test_columns_that_the_source_lacks_come_from_the_target() -> None:
    builder = copy_columns(SCHEMA, THEIRS.schema.names, otherwise=None)
    assert builder.needs(TARGET) == ("v",)
    assert builder.build({TARGET: MINE, SOURCE: THEIRS}).to_pylist() == [
        {"id": 1, "v": "mine", "w": 9.0}
    ]


def test_columns_of_new_rows_that_the_source_lacks_are_null() -> None:
    builder = copy_columns(SCHEMA, THEIRS.schema.names, otherwise=Null())
    assert builder.needs(TARGET) == ()
    assert builder.build({SOURCE: THEIRS}).to_pylist() == [{"id": 1, "v": None, "w": 9.0}]


def test_some_columns_can_be_computed() -> None:
    builder = compute_columns(SCHEMA, {"w": "source.w + target.w"}, SCOPE, otherwise=None)
    assert set(builder.needs(TARGET)) == {"id", "v", "w"}
    assert builder.needs(SOURCE) == ("w",)
    assert builder.build({TARGET: MINE, SOURCE: THEIRS}).column("w").to_pylist() == [9.5]


@pytest.mark.parametrize(
    ("text", "side"),
    [("source.w", SOURCE), (" `source`.`w` ", SOURCE), ("target.w", TARGET)],
)
def test_a_column_of_the_same_type_is_copied(text: str, side: str) -> None:
    builder = compute_columns(SCHEMA, {"w": text}, SCOPE, otherwise=Null())
    assert builder.values[2] == CopiedColumn(side=side, column="w")


@pytest.mark.parametrize("text", ["source.id", "source.w + 0", "(source.w)", "1.5"])
def test_any_other_expression_is_evaluated(text: str) -> None:
    builder = compute_columns(SCHEMA, {"w": text}, SCOPE, otherwise=Null())
    assert isinstance(builder.values[2], ScopedValue)


@pytest.mark.parametrize("values", [{}, {"missing": "1"}])
def test_what_computes_no_column_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError):
        compute_columns(SCHEMA, values, SCOPE, otherwise=None)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (pa.array(["a", "b"]), pa.dictionary(pa.int32(), pa.string())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string()),
        (pa.array([1, 2]), pa.float64()),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), pa.list_(pa.int64(), 2)),
        (pa.nulls(2), pa.string()),
    ],
    ids=str,
)
def test_values_are_brought_to_the_type_of_the_column(array: pa.Array, dtype: pa.DataType) -> None:
    found = cast_to_field(array, pa.field("x", dtype))
    assert found.type == dtype
    assert found.to_pylist() == array.to_pylist()


def test_values_that_do_not_fit_are_refused_with_their_column() -> None:
    with pytest.raises(SchemaMismatchError, match="Can't cast values of column x to"):
        cast_to_field(pa.array(["a"]), pa.field("x", pa.int64()))
