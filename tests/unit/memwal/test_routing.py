from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.format.ids import FieldId
from lancelake.format.memwal import wal_files, wal_keys
from lancelake.format.memwal.details import Bucketed, ByValue, Unsharded
from lancelake.memwal.shape import RowShape
from lancelake.memwal.table_writer import routed
from tests.support.memwal_tables import SCHEMA, rows

SHAPE = RowShape(table=from_arrow(SCHEMA), data_version=FileVersion.V2_1, keys=("id",))
(BATCH,) = SHAPE.upserts(rows(*((k % 40, str(k)) for k in range(80))))


def test_each_row_is_in_the_region_of_its_bucket() -> None:
    parts = list(routed(Bucketed(column=FieldId(0), buckets=4), SHAPE, BATCH))
    assert sum(part.num_rows for _, part in parts) == BATCH.num_rows
    for region, part in parts:
        (bucket,) = set(wal_keys.buckets(part.column("id"), 4).tolist())
        assert (region.id, region.value) == (
            wal_files.bucket_region(bucket),
            bucket.to_bytes(4, "little"),
        )
        written = [int(name) for name in part.column("name").to_pylist()]
        assert written == sorted(written)


def test_an_unsharded_table_has_one_region() -> None:
    ((region, part),) = routed(Unsharded(), SHAPE, BATCH)
    assert (region.id, part) == (wal_files.unsharded_region(), BATCH)
    assert region.new_manifest().field_values == (("bucket", b"\0\0\0\0"),)


def test_rows_are_divided_by_value() -> None:
    spec = ByValue(column=FieldId(0), result_type="int64")
    parts = list(routed(spec, SHAPE, BATCH))
    assert len(parts) == 40
    region, part = parts[1]
    assert region.id == wal_files.identity_region((1).to_bytes(8, "little"))
    assert part.column("name").to_pylist() == ["1", "41"]


def test_a_table_without_a_spec_routes_nothing() -> None:
    with pytest.raises(InvalidRequestError, match="no region spec"):
        list(routed(None, SHAPE, BATCH))


def test_a_column_outside_the_key_does_not_route() -> None:
    with pytest.raises(InvalidRequestError, match="not part of the key"):
        list(routed(Bucketed(column=FieldId(1), buckets=2), SHAPE, BATCH))


def test_a_column_that_is_gone_is_reported() -> None:
    with pytest.raises(CorruptTableError, match="field 9"):
        list(routed(Bucketed(column=FieldId(9), buckets=2), SHAPE, BATCH))
