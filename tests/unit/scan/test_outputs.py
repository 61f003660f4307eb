"""Columns of a scan: order and types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.frozen import FrozenMap
from lancelake.scan.request import ScanRequest, output_field, resolve_outputs

SCHEMA = from_arrow(
    pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False, metadata={"unit": "m"}),
            ("B", pa.string()),
            ("with space", pa.string()),
            ("st", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("ls", pa.list_(pa.struct([("q", pa.int64())]))),
        ]
    )
)


def fields(columns: tuple[str, ...] | dict[str, str] | None, **flags: bool) -> list[pa.Field]:
    asked = FrozenMap(columns) if isinstance(columns, dict) else columns
    outputs = resolve_outputs(SCHEMA, ScanRequest(columns=asked, **flags))
    return [output_field(output, SCHEMA) for output in outputs]


def names(columns: tuple[str, ...] | dict[str, str] | None, **flags: bool) -> list[str]:
    return [field.name for field in fields(columns, **flags)]


def test_all_columns_come_when_none_are_named() -> None:
    assert names(None) == ["a", "B", "with space", "st", "ls"]


def test_columns_come_in_the_order_asked_for() -> None:
    assert names(("st.y", "B", "st", "a")) == ["st.y", "B", "st", "a"]


def test_no_columns_are_no_columns() -> None:
    assert names(()) == []


def test_name_with_special_characters_may_be_quoted() -> None:
    (field,) = fields(("`with space`",))
    assert field.type == pa.string()


def test_field_keeps_nullability_and_metadata() -> None:
    (field,) = fields(("a",))
    assert (field.nullable, field.metadata) == (False, {b"unit": b"m"})


@pytest.mark.parametrize(
    ("columns", "flags", "expected"),
    [
        (("a",), {"with_row_id": True}, ["a", "_rowid"]),
        (
            ("a",),
            {"with_row_id": True, "with_row_address": True},
            ["a", "_rowid", "_rowaddr"],
        ),
        (("_rowid", "a"), {}, ["_rowid", "a"]),
        (("_rowid", "a"), {"with_row_id": True}, ["a", "_rowid"]),
        (("_rowaddr", "a", "_rowid"), {"with_row_address": True}, ["a", "_rowid", "_rowaddr"]),
        ({"id": "_rowid", "a": "a"}, {"with_row_id": True}, ["id", "a", "_rowid"]),
        ((), {"with_row_id": True}, ["_rowid"]),
        (("_rowoffset", "_row_created_at_version"), {}, ["_rowoffset", "_row_created_at_version"]),
    ],
)
def test_meta_columns_have_their_place(
    columns: tuple[str, ...] | dict[str, str], flags: dict[str, bool], expected: list[str]
) -> None:
    assert names(columns, **flags) == expected


@pytest.mark.parametrize(
    ("sql", "dtype"),
    [
        ("a + 1", pa.int64()),
        ("upper(B)", pa.string()),
        ("st.x", pa.int64()),
        ("B", pa.string()),
        ("_rowid", pa.uint64()),
        ("a > 1", pa.bool_()),
    ],
)
def test_expression_has_the_type_of_its_value(sql: str, dtype: pa.DataType) -> None:
    (field,) = fields({"v": sql})
    assert (field.name, field.type) == ("v", dtype)


@pytest.mark.parametrize("columns", [("a", "a"), ("st.x", "a", "st.x"), ("_rowid", "_rowid")])
def test_repeated_name_is_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="Duplicate column name"):
        fields(columns)


@pytest.mark.parametrize(
    "name", ["nosuch", "A", "b", "st.z", "st.X", "", "a.b", "ls.q", "_distance"]
)
def test_unknown_column_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="No field named"):
        fields((name,))


def test_column_inside_a_list_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="not a struct"):
        fields(("ls.item.q",))


@pytest.mark.parametrize("sql", ["nosuch + 1", "", "a +"])
def test_expression_that_does_not_fit_is_refused(sql: str) -> None:
    with pytest.raises(InvalidExpressionError):
        fields({"v": sql})
