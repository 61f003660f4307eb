"""Tests of the schemas and rows of pydantic models."""

from __future__ import annotations

import enum
from datetime import date, datetime
from typing import Annotated, Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, Field, create_model

from lancelake.errors import UnknownDataError
from lancelake.table.ingest import objects
from lancelake.table.ingest.objects import to_reader


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Mixed(enum.Enum):
    NUMBER = 1
    TEXT = "x"


class Point(BaseModel):
    x: int
    label: str | None = None


class Row(BaseModel):
    id: int
    color: Color = Color.RED
    point: Point | None = None


class Wider(Row):
    extra: int = 0


@pytest.mark.parametrize(
    ("annotation", "dtype", "nullable"),
    [
        (int, pa.int64(), False),
        (float, pa.float64(), False),
        (str, pa.utf8(), False),
        (bool, pa.bool_(), False),
        (bytes, pa.binary(), False),
        (date, pa.date32(), False),
        (datetime, pa.timestamp("us"), False),
        (int | None, pa.int64(), True),
        (list[int], pa.list_(pa.int64()), False),
        (list[str | None], pa.list_(pa.utf8()), False),
        (tuple[int, ...], pa.list_(pa.int64()), False),
        (list[Annotated[int, "unit"]], pa.list_(pa.int64()), False),
        (Color, pa.dictionary(pa.int32(), pa.utf8()), False),
        (Level, pa.int64(), False),
        (Mixed, pa.utf8(), False),
        (
            Point,
            pa.struct([pa.field("x", pa.int64(), False), pa.field("label", pa.utf8())]),
            False,
        ),
    ],
)
def test_an_annotation_has_an_arrow_type(
    annotation: Any, dtype: pa.DataType, nullable: bool
) -> None:
    model = create_model("Model", column=(annotation, ...))
    assert objects.schema_of(model) == pa.schema([pa.field("column", dtype, nullable)])


def test_a_time_zone_comes_from_the_extras_of_the_field() -> None:
    class Visit(BaseModel):
        at: datetime = Field(json_schema_extra={"tz": "UTC"})

    assert objects.schema_of(Visit).field("at").type == pa.timestamp("us", tz="UTC")


def test_a_default_does_not_make_a_column_nullable() -> None:
    assert not objects.schema_of(Row).field("color").nullable


@pytest.mark.parametrize("annotation", [dict, list, complex, int | str, tuple[int, str]])
def test_an_annotation_without_an_arrow_type_is_refused(annotation: Any) -> None:
    model = create_model("Model", column=(annotation, ...))
    with pytest.raises(UnknownDataError, match="unsupported type"):
        objects.schema_of(model)


def test_members_of_enumerations_are_stored_as_their_values() -> None:
    batch = objects.batch_of([Row(id=1), Row(id=2, color=Color.BLUE, point=Point(x=3))], Row)
    assert batch.to_pylist() == [
        {"id": 1, "color": "red", "point": None},
        {"id": 2, "color": "blue", "point": {"x": 3, "label": None}},
    ]


def test_rows_of_a_subclass_are_refused() -> None:
    with pytest.raises(UnknownDataError, match="row 1 must be an instance of Row exactly"):
        objects.batch_of([Row(id=1), Wider(id=2)], Row)


def test_rows_must_be_a_list() -> None:
    with pytest.raises(UnknownDataError, match="must be a list"):
        objects.batch_of((Row(id=1),), Row)


def test_a_list_of_models_is_a_stream() -> None:
    found = to_reader([Row(id=1)]).read_all()
    assert found.schema == objects.schema_of(Row)
    assert found["id"].to_pylist() == [1]


def test_a_given_schema_selects_and_types_columns() -> None:
    schema = pa.schema([("id", pa.int32())])
    assert to_reader([Row(id=1)], schema).read_all() == pa.table({"id": [1]}, schema=schema)


def test_a_list_of_models_and_other_values_is_refused() -> None:
    with pytest.raises(UnknownDataError, match="not of dict"):
        to_reader([Row(id=1), {"id": 2}])


def test_other_classes_are_no_models() -> None:
    assert objects.is_model(Row)
    assert not objects.is_model(int)
    assert not objects.is_model(Row(id=1))
