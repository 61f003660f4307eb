from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, InvalidRequestError
from lancelake.format.ids import FieldId
from lancelake.format.memwal.details import Bucketed, ByValue, RegionSpec, Unsharded
from lancelake.memwal.region import details_of
from lancelake.memwal.setup import bucketed, by_value, initialize
from tests.support.memwal_tables import SCHEMA, new_table, newest, rows


@pytest.mark.parametrize(
    ("spec", "regions"),
    [
        (None, 0),
        (Unsharded(), 1),
        (Bucketed(column=FieldId(0), buckets=8), 8),
        (ByValue(column=FieldId(0), result_type="int64"), 0),
    ],
)
def test_the_spec_is_recorded(tmp_path: Path, spec: RegionSpec | None, regions: int) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    initialize(newest(tmp_path / "t"), spec)
    found = details_of(newest(tmp_path / "t"))
    assert (found.spec(), found.num_regions, found.progress()) == (spec, regions, {})


def test_a_table_has_one_mem_wal(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "a"))
    with pytest.raises(AlreadyExistsError, match="already has a MemWAL"):
        initialize(base, None)


def test_only_key_columns_choose_the_region(tmp_path: Path) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    base = newest(tmp_path / "t")
    assert bucketed(base, "id", 4) == Bucketed(column=FieldId(0), buckets=4)
    assert by_value(base, "id") == ByValue(column=FieldId(0), result_type="int64")
    with pytest.raises(InvalidRequestError, match="not part of the primary key"):
        bucketed(base, "name", 4)


def test_a_table_without_a_mem_wal(tmp_path: Path) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="has no MemWAL"):
        details_of(newest(tmp_path / "t"))


def test_bytes_do_not_choose_the_region(tmp_path: Path) -> None:
    metadata = SCHEMA.field("id").metadata
    schema = pa.schema([pa.field("id", pa.binary(), nullable=False, metadata=metadata)])
    lance.write_dataset(schema.empty_table(), tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="cannot choose a region"):
        by_value(newest(tmp_path / "t"), "id")
