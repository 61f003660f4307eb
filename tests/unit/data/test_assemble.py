"""Columns of several files are combined, with nulls where no file has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.fragment_reader import Assembler, empty_batch
from lancelake.format.arrow_schema import from_arrow

INT = pa.int64()
ITEM = pa.struct([("x", INT), ("y", pa.string())])
SCHEMA = pa.schema(
    [("a", INT), ("b", pa.string()), ("st", ITEM), ("ls", pa.list_(ITEM)), ("v", pa.list_(ITEM, 1))]
)
ASSEMBLE = Assembler(from_arrow(SCHEMA))


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def test_batch_that_has_everything_is_passed_on() -> None:
    whole = pa.RecordBatch.from_pylist([{"a": 1}], schema=SCHEMA)
    assert ASSEMBLE((whole,), 1) is whole


def test_columns_come_in_the_order_of_the_schema() -> None:
    parts = (batch(b=pa.array(["x", None])), batch(a=pa.array([1, None], INT)))
    found = ASSEMBLE(parts, 2)
    assert found.schema.equals(SCHEMA)
    assert found.select(["a", "b"]).to_pylist() == [{"a": 1, "b": "x"}, {"a": None, "b": None}]


def test_column_of_no_file_is_null() -> None:
    found = ASSEMBLE((batch(a=pa.array([1, 2], INT)),), 2)
    assert [found.column(name).null_count for name in ("b", "st", "ls", "v")] == [2] * 4


def test_no_files_give_nulls_for_every_row() -> None:
    found = ASSEMBLE((), 3)
    assert (found.num_rows, found.schema) == (3, SCHEMA)


def test_members_of_a_struct_come_from_several_files() -> None:
    left = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", INT)]))
    right = pa.array([{"y": "p"}, None, {"y": "q"}], pa.struct([("y", pa.string())]))
    found = ASSEMBLE((batch(st=left), batch(st=right)), 3)
    assert found["st"].to_pylist() == [{"x": 1, "y": "p"}, None, {"x": None, "y": "q"}]


def test_member_of_no_file_is_null_within_its_struct() -> None:
    only = pa.array([{"y": "p"}, None], pa.struct([("y", pa.string())]))
    found = ASSEMBLE((batch(st=only),), 2)
    assert found["st"].to_pylist() == [{"x": None, "y": "p"}, None]


@pytest.mark.parametrize(("name", "make"), [("ls", pa.list_), ("v", lambda t: pa.list_(t, 1))])
def test_members_of_items_come_from_several_files(name: str, make) -> None:
    left = pa.array([[{"x": 1}], None, [{"x": 3}]], make(pa.struct([("x", INT)])))
    right = pa.array([[{"y": "p"}], None, [None]], make(pa.struct([("y", pa.string())])))
    found = ASSEMBLE((batch(**{name: left}), batch(**{name: right})), 3)
    assert found[name].to_pylist()[:2] == [[{"x": 1, "y": "p"}], None]


def test_slices_are_assembled_by_their_rows() -> None:
    left = pa.array([None, {"x": 1}, None], pa.struct([("x", INT)])).slice(1)
    right = pa.array([{"y": "o"}, {"y": "p"}, None], pa.struct([("y", pa.string())])).slice(1)
    found = ASSEMBLE((batch(st=left), batch(st=right)), 2)
    assert found["st"].to_pylist() == [{"x": 1, "y": "p"}, None]


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_rows_without_columns_have_a_number(rows: int) -> None:
    assert Assembler(from_arrow(pa.schema([])))((), rows).num_rows == rows
    assert empty_batch(rows).num_rows == rows


def test_a_schema_is_looked_at_once() -> None:
    schema = from_arrow(SCHEMA)
    assert Assembler.of(schema) is Assembler.of(schema)
    assert Assembler.of(from_arrow(SCHEMA)).schema == schema
