from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.format.memwal.details import Bucketed, ByValue, RegionSpec, Unsharded
from lancelake.memwal.region import details_of
from lancelake.memwal.setup import set_up
from tests.support.memwal_tables import newest, rows


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, Bucketed(column=0, buckets=8)),
        ({"buckets": 3, "key": ["id"]}, Bucketed(column=0, buckets=3)),
        ({"value_column": "id"}, ByValue(column=0, result_type="int64")),
        ({"unsharded": True}, Unsharded()),
    ],
)
def test_rows_are_divided_as_chosen(
    tmp_path: Path, choices: dict[str, object], expected: RegionSpec
) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    made = set_up(newest(tmp_path / "t"), settings={"max_memtable_rows": 7}, **choices)
    assert details_of(made).spec() == expected
    assert details_of(made).writer_defaults["max_memtable_rows"] == "7"


def test_contradicting_choices_are_refused(tmp_path: Path) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    base = newest(tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="by buckets, by value, or not at all"):
        set_up(base, buckets=2, value_column="id")
    with pytest.raises(InvalidRequestError, match="primary key is id, not name"):
        set_up(base, key="name")
    assert newest(tmp_path / "t").version == 1


@pytest.mark.parametrize(
    ("dtype", "choices", "problem"),
    [
        (pa.float64(), {}, "column id of type double cannot be the key"),
        (pa.date32(), {"unsharded": True}, "column id of type date32:day cannot be the key"),
        (pa.binary(4), {"unsharded": True}, "column id of type fixed_size_binary:4 cannot be"),
        (pa.binary(4), {}, "column id of type fixed_size_binary:4 cannot be"),
        (pa.binary(), {}, r"of type binary cannot be divided into buckets.*unsharded=True"),
        (pa.large_binary(), {"buckets": 3}, "of type large_binary cannot be divided into buckets"),
        (pa.int64(), {"buckets": 0}, "must be between 1 and 1024, not 0"),
        (pa.int64(), {"settings": {"max_rows": 5}}, "a writer has no setting max_rows"),
    ],
    ids=str,
)
def test_a_refused_set_up_declares_no_key(
    tmp_path: Path, dtype: pa.DataType, choices: dict[str, Any], problem: str
) -> None:
    schema = pa.schema([pa.field("id", dtype, nullable=False), pa.field("name", pa.utf8())])
    lance.write_dataset(schema.empty_table(), tmp_path / "t")
    with pytest.raises(LanceTableError, match=problem):
        set_up(newest(tmp_path / "t"), key="id", **choices)
    assert newest(tmp_path / "t").version == 1


def test_the_declared_key_has_the_order_of_the_names(tmp_path: Path) -> None:
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("a", "b")])
    lance.write_dataset(schema.empty_table(), tmp_path / "t")
    made = set_up(newest(tmp_path / "t"), key=["b", "a"], buckets=2)
    assert details_of(made).spec() == Bucketed(column=1, buckets=2)
    assert [field.name for field in made.manifest.schema.primary_key()] == ["b", "a"]
