from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.ids import FieldId
from lancelake.format.operations import ExactKeys, KeyExistenceFilter
from lancelake.txn import key_bloom

K = (FieldId(0),)


def keys(*columns: pa.Array) -> KeyExistenceFilter:
    return key_bloom.build(tuple(FieldId(n) for n in range(len(columns))), [columns])


def numbers(*values: int) -> KeyExistenceFilter:
    return keys(pa.array(values, pa.int64()))


def test_a_shared_key_is_found() -> None:
    assert key_bloom.may_intersect(numbers(1, 2), numbers(2, 3))


def test_a_few_thousand_other_keys_are_distinguished() -> None:
    mine = keys(pa.array(range(2000), pa.int64()))
    theirs = keys(pa.array(range(100_000, 100_010), pa.int64()))
    assert not key_bloom.may_intersect(mine, theirs)


def test_keys_of_other_fields_cannot_be_compared() -> None:
    other = replace(numbers(9), field_ids=(FieldId(5),))
    assert key_bloom.may_intersect(numbers(1), other)


def test_filters_of_other_sizes_cannot_be_compared() -> None:
    one = numbers(1)
    smaller = replace(one, keys=replace(one.keys, bitmap=bytes(64)))
    assert key_bloom.may_intersect(one, smaller)


def test_exact_keys_are_compared_with_exact_keys_only() -> None:
    exact = [
        KeyExistenceFilter(field_ids=K, keys=ExactKeys(key_hashes=h)) for h in ((1, 2), (3,), (2,))
    ]
    assert not key_bloom.may_intersect(exact[0], exact[1])
    assert key_bloom.may_intersect(exact[0], exact[2])
    assert key_bloom.may_intersect(exact[0], numbers(7))


def test_a_key_with_a_null_is_not_recorded() -> None:
    assert key_bloom.is_empty(keys(pa.array([None], pa.int64())))
    assert key_bloom.is_empty(keys(pa.array([1], pa.int64()), pa.array([None], pa.string())))


def test_batches_and_parts_add_up() -> None:
    parts = [numbers(1, 2), numbers(3)]
    assert key_bloom.merged(parts) == numbers(1, 2, 3)
    batches = [[pa.array([1, 2], pa.int64())], [pa.array([3], pa.int64())]]
    assert key_bloom.build(K, batches) == numbers(1, 2, 3)


def test_filters_over_other_keys_are_not_united() -> None:
    with pytest.raises(InvalidRequestError, match="different keys"):
        key_bloom.merged([numbers(1), replace(numbers(1), field_ids=(FieldId(7),))])


def test_a_key_needs_a_column_for_each_field() -> None:
    with pytest.raises(InvalidRequestError, match="2 columns for a key of 1"):
        key_bloom.build(K, [[pa.array([1]), pa.array([2])]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([-2], pa.int8()), (-2).to_bytes(8, "little", signed=True)),
        (pa.array([-2], pa.int32()), (-2).to_bytes(8, "little", signed=True)),
        (pa.array([200], pa.uint8()), (200).to_bytes(8, "little")),
        (pa.array([True]), (1).to_bytes(8, "little")),
        (pa.array([dt.date(1970, 1, 3)], pa.date32()), (2).to_bytes(8, "little")),
        (pa.array([7], pa.time64("us")), (7).to_bytes(8, "little")),
        (pa.array([-7], pa.timestamp("ns", "UTC")), (-7).to_bytes(8, "little", signed=True)),
        (pa.array([7], pa.duration("s")), (7).to_bytes(8, "little")),
        (pa.array([Decimal("0.07")], pa.decimal128(5, 2)), (7).to_bytes(16, "little")),
        (pa.array([b"ab"], pa.binary(2)), b"ab"),
        (pa.array(["a"]).dictionary_encode(), b"a"),
        (pa.array(["a"], pa.string_view()), b"a"),
        (pa.array([0.0], pa.float32()), bytes(8)),
        (pa.array([-0.0], pa.float64()), bytes(8)),
    ],
)
def test_a_value_has_one_encoding(column: pa.Array, expected: bytes) -> None:
    assert key_bloom.encoded([column])[0].as_py() == expected


def test_each_part_ends_with_a_zero_byte() -> None:
    found = key_bloom.encoded([pa.array(["ab"]), pa.array([b"c"])])
    assert found[0].as_py() == b"ab\0c\0"


def test_slices_are_read_from_where_they_start() -> None:
    column = pa.array([b"ab", b"cd", b"ef"], pa.binary(2)).slice(1, 2)
    assert key_bloom.encoded([column]).to_pylist() == [b"cd", b"ef"]
    assert key_bloom.build(K, [[pa.array([1, 2, 3], pa.int64()).slice(1)]]) == numbers(2, 3)


def test_a_nested_key_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot be recorded"):
        keys(pa.array([[1]]))
