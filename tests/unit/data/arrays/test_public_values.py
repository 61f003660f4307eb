"""JSON as text and extension types in results, at every depth."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.arrays.batches import to_public
from lancelake.format import jsonb
from lancelake.format.arrow_schema import from_arrow, public_field, storage_field

JSON = pa.json_()
TEXTS = ['{"a":1}', None, "[]"]


def stored() -> pa.Array:
    return jsonb.encode_array(pa.array(TEXTS))


def shown(dtype: pa.DataType, array: pa.Array) -> pa.Array:
    """Show an array, as a file keeps it, of a column of this type."""
    (field,) = from_arrow(pa.schema([("c", dtype)])).fields
    storage = storage_field(field).type
    found = to_public(
        field, array.cast(storage) if array.type != storage else array, public_field(field).type
    )
    assert found.type == public_field(field).type
    return found


def texts(array: pa.Array) -> list[str | None]:
    return list(array.storage.to_pylist())


def test_json_is_text() -> None:
    assert texts(shown(JSON, stored())) == TEXTS


def test_json_in_a_struct_is_text() -> None:
    struct = pa.StructArray.from_arrays(
        [stored(), pa.array([1, 2, 3])], names=["j", "i"], mask=pa.array([False, False, True])
    )
    found = shown(pa.struct([("j", JSON), ("i", pa.int64())]), struct)
    assert found.is_valid().to_pylist() == [True, True, False]
    assert texts(found.field(0)) == TEXTS


@pytest.mark.parametrize("start", [0, 1, 2])
def test_json_in_a_list_is_text_in_any_slice(start: int) -> None:
    offsets = pa.array([0, 2, 2, 3], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, stored()).slice(start)
    found = shown(pa.list_(JSON), lists)
    whole = [TEXTS[:2], [], TEXTS[2:]]
    assert [texts(items.values) for items in found] == whole[start:]


def test_plain_column_is_passed_on() -> None:
    array = pa.array([1, None])
    assert shown(pa.int64(), array) is array


def test_extension_type_is_put_on() -> None:
    found = shown(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16)))
    assert found.type == pa.uuid()
