"""Tests of tables of pydantic models."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import BaseModel, ValidationError, create_model

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, UnknownDataError
from lancelake.pylance.pydantic import (
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
)


class BigPage(BaseModel):
    id: int
    title: str | None = None


VECTORS = create_model(
    "Vectors",
    one=(Vector(2), ...),
    exact=(Vector(3, pa.float16(), nullable=False), ...),
    several=(MultiVector(2), ...),
)


def test_vectors_have_a_fixed_size() -> None:
    assert pydantic_to_schema(VECTORS) == pa.schema(
        [
            pa.field("one", pa.list_(pa.float32(), 2)),
            pa.field("exact", pa.list_(pa.float16(), 3), nullable=False),
            pa.field("several", pa.list_(pa.list_(pa.float32(), 2))),
        ]
    )


def test_the_size_of_vectors_is_checked() -> None:
    with pytest.raises(ValidationError):
        VECTORS(one=[1.0], exact=[1, 2, 3], several=[])
    with pytest.raises(ValidationError):
        VECTORS(one=[1.0, 2.0], exact=[1, 2, 3], several=[[1.0]])


def test_vectors_are_written(tmp_path: Path) -> None:
    row = VECTORS(one=[1, 2], exact=[1, 2, 3], several=[[1, 2], [3, 4]])
    assert repr(row.one) == "FixedSizeList(dim=2)"
    written = lance.write_dataset([row], tmp_path / "t")
    assert written.to_table().to_pylist() == [
        {"one": [1, 2], "exact": [1, 2, 3], "several": [[1, 2], [3, 4]]}
    ]


def test_a_table_is_named_after_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = lance.LanceDataset.from_pydantic_model(BigPage, [BigPage(id=1)])
    assert made.uri == "big_page"
    assert made.schema == pydantic_to_schema(BigPage)


def test_models_are_appended_and_merged(tmp_path: Path) -> None:
    table = lance.write_dataset([BigPage(id=1)], tmp_path / "t")
    table.insert([BigPage(id=2)])
    table.merge_insert("id").when_not_matched_insert_all().execute(
        [BigPage(id=2, title="x"), BigPage(id=3)]
    )
    assert sorted(table.to_table()["id"].to_pylist()) == [1, 2, 3]


def test_models_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="non-empty list"):
        lance.LanceDataset.from_pydantic_model(BigPage, [], tmp_path / "t")


def test_other_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownDataError, match="BaseModel subclass"):
        lance.LanceDataset.from_pydantic_model(int, [], tmp_path / "t")
    with pytest.raises(UnknownDataError, match="BaseModel subclass"):
        pydantic_to_schema(int)


def test_fields_are_described() -> None:
    assert is_nullable(BigPage.model_fields["title"])
    assert not is_nullable(BigPage.model_fields["id"])
    assert get_extras(BigPage.model_fields["id"], "tz") is None
