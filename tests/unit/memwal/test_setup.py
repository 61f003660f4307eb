from __future__ import annotations

from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.format.memwal.region_spec import Bucketed, ByValue, RegionSpec, Unsharded
from lancelake.memwal.initialize import details_of
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
