"""Extension types convert without loss."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.logical_types import opened, resolved

NAME = b"ARROW:extension:name"
PARAMETERS = b"ARROW:extension:metadata"


@pytest.mark.parametrize(
    ("dtype", "storage", "name", "parameters"),
    [
        (pa.uuid(), pa.binary(16), b"arrow.uuid", b""),
        (pa.json_(), pa.string(), b"arrow.json", b""),
        (pa.json_(pa.large_string()), pa.large_string(), b"arrow.json", b""),
        (pa.bool8(), pa.int8(), b"arrow.bool8", b""),
        (
            pa.fixed_shape_tensor(pa.float32(), [2, 3]),
            pa.list_(pa.float32(), 6),
            b"arrow.fixed_shape_tensor",
            b'{"shape":[2,3]}',
        ),
        (
            pa.opaque(pa.int32(), "kind", "maker"),
            pa.int32(),
            b"arrow.opaque",
            b'{"type_name":"kind","vendor_name":"maker"}',
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_built_in_type_opens_into_storage_and_metadata(dtype, storage, name, parameters):
    assert opened(pa.field("c", dtype)) == (storage, {NAME: name, PARAMETERS: parameters})


def test_other_metadata_stays_beside_that_of_the_extension():
    _, metadata = opened(pa.field("c", pa.uuid(), metadata={"k": "v"}))

    assert metadata == {b"k": b"v", NAME: b"arrow.uuid", PARAMETERS: b""}


def test_a_plain_type_opens_into_itself():
    assert opened(pa.field("c", pa.int8(), metadata={"k": "v"})) == (pa.int8(), {b"k": b"v"})


def test_a_plain_type_without_metadata_has_none():
    assert opened(pa.field("c", pa.int8())) == (pa.int8(), {})


@pytest.mark.parametrize(
    "dtype", [pa.uuid(), pa.bool8(), pa.fixed_shape_tensor(pa.int8(), [2])], ids=str
)
def test_what_was_opened_is_resolved_again(dtype):
    storage, metadata = opened(pa.field("c", dtype))
    plain = pa.schema([pa.field("c", storage, metadata=metadata)], metadata={"s": "t"})

    assert resolved(plain).equals(pa.schema([pa.field("c", dtype)], metadata={"s": "t"}))


def test_an_extension_type_inside_a_list_is_resolved():
    item = pa.field("item", pa.binary(16), metadata={NAME: b"arrow.uuid"})

    assert resolved(pa.schema([pa.field("c", pa.list_(item))])).field(0).type == pa.list_(pa.uuid())


def test_an_unregistered_extension_type_stays_metadata():
    plain = pa.schema([pa.field("c", pa.int8(), metadata={NAME: b"nobody.knows"})])

    assert resolved(plain).equals(plain, check_metadata=True)


def test_storage_that_the_extension_type_does_not_take_is_damage():
    plain = pa.schema([pa.field("c", pa.binary(15), metadata={NAME: b"arrow.uuid"})])

    with pytest.raises(CorruptTableError):
        resolved(plain)
