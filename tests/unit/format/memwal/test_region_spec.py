from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.ids import FieldId
from lancelake.format.memwal.details import (
    Bucketed,
    ByValue,
    RegionSpec,
    Unsharded,
    decode_spec,
    encode_spec,
)
from lancelake.proto import table_pb2

SPECS = (
    Unsharded(),
    Bucketed(column=FieldId(3), buckets=8),
    ByValue(column=FieldId(0), result_type="utf8"),
)


@pytest.mark.parametrize("spec", SPECS)
def test_specs_are_read_back(spec: RegionSpec) -> None:
    assert decode_spec(encode_spec(spec)) == spec


@pytest.mark.parametrize("buckets", [0, 1025])
def test_the_number_of_buckets_is_limited(buckets: int) -> None:
    with pytest.raises(InvalidRequestError, match="between 1 and 1024"):
        Bucketed(column=FieldId(0), buckets=buckets)


@pytest.mark.parametrize("transform", ["year", "multi_bucket", "truncate"])
def test_a_transform_that_no_release_evaluates_is_refused(transform: str) -> None:
    field = table_pb2.RegionField(field_id="bucket", transform=transform)
    with pytest.raises(UnsupportedError, match=transform):
        decode_spec(table_pb2.RegionSpec(spec_id=1, fields=[field]))


def test_a_bucket_spec_without_a_count_is_corrupt() -> None:
    field = table_pb2.RegionField(field_id="bucket", transform="bucket", source_ids=[0])
    with pytest.raises(CorruptTableError, match="buckets"):
        decode_spec(table_pb2.RegionSpec(spec_id=1, fields=[field]))
