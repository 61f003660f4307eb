"""Cells of bounded size for values of every type."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from lancelake.describe.cells import cell, image_type, whole_text
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target

TARGET = Target(release="14.0.2", file_version="2.2")


@given(schemas(TARGET).flatmap(lambda schema: tables(schema, TARGET)))
def test_every_value_has_a_small_cell(table: pa.Table) -> None:
    for column in table.columns:
        for value in column:
            text = json.dumps(cell(value), allow_nan=False)
            assert len(text) < 20_000


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (None, pa.int64(), None),
        (2**64 - 1, pa.uint64(), {"kind": "number", "text": str(2**64 - 1)}),
        (0.1, pa.float32(), {"kind": "number", "text": "0.1"}),
        (True, pa.bool_(), {"kind": "number", "text": "true"}),
        (b"<svg", pa.binary(), {"kind": "bytes", "size_bytes": 4, "hex": "3c 73 76 67"}),
    ],
)
def test_cells(value: Any, dtype: pa.DataType, expected: Any) -> None:
    assert cell(pa.scalar(value, dtype)) == expected


def test_a_long_text_is_cut() -> None:
    found = cell(pa.scalar("x" * 5000))
    assert (found["length"], found["is_cut"], len(found["text"]) < 1000) == (5000, True, True)


def test_a_long_list_states_how_many_items_are_left_out() -> None:
    assert "… 60 more" in cell(pa.scalar([["a"] * 100]))["text"]


def test_a_text_is_cut_at_a_number_of_characters() -> None:
    found = whole_text(pa.scalar("abcdef"), 3)
    assert found == {"text": "abc", "length": 6, "is_cut": True}


def test_a_vector_has_its_range_without_values_that_are_not_finite() -> None:
    found = cell(pa.scalar([1.0, float("nan"), -2.0, None, float("inf")], pa.list_(pa.float32())))
    assert (found["kind"], found["length"], found["min"], found["max"]) == ("vector", 5, -2.0, 1.0)
    assert found["values"] == [1.0, None, -2.0, None, None]


def test_a_large_vector_is_cut() -> None:
    found = cell(pa.scalar([0.5] * 5000, pa.list_(pa.float32(), 5000)))
    assert found["length"] == 5000 and len(found["values"]) < 1000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBPVP8 ", "image/webp"),
        (b"RIFF1234WAVE", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_only_images_without_scripts_are_recognised(data: bytes, expected: str | None) -> None:
    assert image_type(data) == expected
