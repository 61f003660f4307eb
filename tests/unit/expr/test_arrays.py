"""Nested values with the nulls of their parents."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.expr.literals import (
    at_path,
    may_be_null,
    plain_storage,
    type_without_views,
    without_views,
)

INNER = pa.struct([("z", pa.int64())])
OUTER = pa.struct([("x", pa.int64()), ("in", INNER)])
ROWS = [{"x": 1, "in": {"z": 1}}, None, {"x": 3, "in": None}, {"x": None, "in": {"z": None}}]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("st",), ROWS),
        (("st", "x"), [1, None, 3, None]),
        (("st", "in", "z"), [1, None, None, None]),
    ],
)
def test_value_is_null_wherever_a_struct_on_the_way_is(
    path: tuple[str, ...], expected: list[object]
) -> None:
    batch = pa.RecordBatch.from_pydict({"st": pa.array(ROWS, OUTER)})
    assert at_path(batch, path).to_pylist() == expected


def test_null_struct_hides_its_members() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["x"], mask=pa.array([False, True])
    )
    batch = pa.RecordBatch.from_arrays([hidden], names=["st"])
    assert at_path(batch, ("st", "x")).to_pylist() == [1, None]


def test_slice_of_a_struct_gives_the_values_of_its_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"st": pa.array(ROWS, OUTER)}).slice(2)
    assert at_path(batch, ("st", "x")).to_pylist() == [3, None]


def test_extension_type_is_stripped() -> None:
    storage = pa.array([b"\x00" * 16])
    array = pa.ExtensionArray.from_storage(pa.uuid(), storage.cast(pa.binary(16)))
    assert plain_storage(array).type == pa.binary(16)


@pytest.mark.parametrize(
    ("viewed", "plain"),
    [
        (pa.string_view(), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.int64(), pa.int64()),
        (pa.large_string(), pa.large_string()),
    ],
)
def test_views_become_what_tables_hold(viewed: pa.DataType, plain: pa.DataType) -> None:
    assert type_without_views(viewed) == plain
    assert without_views(pa.array([None], viewed)).type == plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [(("a",), False), (("b",), True), (("s", "x"), False), (("s", "y"), True), (("t", "x"), True)],
)
def test_a_path_may_lead_to_a_null(path: tuple[str, ...], expected: bool) -> None:
    x, y = pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.int8())
    schema = pa.schema(
        [
            pa.field("a", pa.int8(), nullable=False),
            pa.field("b", pa.int8()),
            pa.field("s", pa.struct([x, y]), nullable=False),
            pa.field("t", pa.struct([x])),
        ]
    )
    assert may_be_null(schema, path) is expected
