"""Strategies for field values with all edge cases, and the arrays they form."""

from __future__ import annotations

import decimal
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.strategies.target import Target

Value = Any  # a plain Python value that `array_of` understands for the field's type
Values = SearchStrategy[Value]

DAY_MS = 86_400_000
PER_DAY = {"s": 86_400, "ms": DAY_MS, "us": DAY_MS * 1000, "ns": DAY_MS * 1_000_000}
LONG = 3000
TEXTS = st.one_of(
    st.sampled_from(["", "a", "null", "ß", "x" * LONG]),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
BINARIES = st.one_of(st.sampled_from([b"", b"\x00", b"\x7f" * LONG]), st.binary(max_size=6))
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text("abß", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text("kq", min_size=1), inner, max_size=2)
    ),
    max_leaves=4,
)
# A legacy table has one dictionary per column for all its rows, so the words are fixed.
WORDS = ("a", "", "b", "ß", "a longer word")


def values(field: pa.Field, target: Target) -> Values:
    """Draw a value of the field, null where field and target allow it."""
    present = _present(field.type, target)
    if pa.types.is_null(field.type):
        return st.none()
    if not field.nullable or (pa.types.is_struct(field.type) and not target.holds_null_structs):
        return present
    return st.one_of(present, present, present, st.none())


def array_of(data_type: pa.DataType, items: Sequence[Value], target: Target) -> pa.Array:
    """Build an array from drawn values."""
    if isinstance(data_type, pa.BaseExtensionType):
        storage = array_of(data_type.storage_type, items, target)
        return pa.ExtensionArray.from_storage(data_type, storage)
    if pa.types.is_dictionary(data_type):
        return _dictionary_array(data_type, items, target)
    if pa.types.is_struct(data_type):
        return _struct_array(data_type, items, target)
    if pa.types.is_map(data_type):
        return _map_array(data_type, items, target)
    if pa.types.is_fixed_size_list(data_type):
        return _fixed_size_list_array(data_type, items, target)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return _list_array(data_type, items, target)
    return pa.array(items, data_type)


def _present(data_type: pa.DataType, target: Target) -> Values:
    if isinstance(data_type, pa.BaseExtensionType):
        return DOCUMENTS.map(_compact_json)
    if pa.types.is_dictionary(data_type):
        return st.sampled_from(_words(data_type.value_type, target))
    if pa.types.is_struct(data_type):
        return st.tuples(*(values(f, target) for f in data_type))
    if pa.types.is_map(data_type):
        key, item = values(data_type.key_field, target), values(data_type.item_field, target)
        return st.lists(st.tuples(key, item), max_size=3, unique_by=lambda entry: entry[0])
    if pa.types.is_fixed_size_list(data_type):
        size, item = data_type.list_size, data_type.value_field
        if not target.holds_null_items_in_fixed_size_lists:
            item = item.with_nullable(False)
        return st.lists(values(item, target), min_size=size, max_size=size)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return st.lists(values(data_type.value_field, target), max_size=3)
    return _scalar(data_type)


def _compact_json(document: Value) -> str:
    """Spell a document as the format gives it back: keys sorted, no blanks."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _scalar(data_type: pa.DataType) -> Values:
    if pa.types.is_boolean(data_type):
        return st.booleans()
    if pa.types.is_integer(data_type):
        return _integers(data_type)
    if pa.types.is_floating(data_type):
        return st.floats(width=data_type.bit_width)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return TEXTS
    if pa.types.is_fixed_size_binary(data_type):
        return st.binary(min_size=data_type.byte_width, max_size=data_type.byte_width)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return BINARIES
    if pa.types.is_decimal(data_type):
        return _decimals(data_type)
    return _moments(data_type)


def _integers(data_type: pa.DataType) -> Values:
    bits = data_type.bit_width
    signed = pa.types.is_signed_integer(data_type)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.one_of(st.sampled_from([low, high, 0, 1]), st.integers(low, high))


def _decimals(data_type: pa.DataType) -> Values:
    limit = 10**data_type.precision - 1
    unscaled = st.one_of(st.sampled_from([-limit, 0, limit]), st.integers(-limit, limit))

    def scaled(number: int) -> decimal.Decimal:
        digits = tuple(int(d) for d in str(abs(number)))
        return decimal.Decimal((int(number < 0), digits, -data_type.scale))

    return unscaled.map(scaled)


def _moments(data_type: pa.DataType) -> Values:
    if pa.types.is_date32(data_type):
        return st.integers(-(2**31), 2**31 - 1)
    if pa.types.is_date64(data_type):
        return st.integers(-(10**8), 10**8).map(lambda days: days * DAY_MS)
    if pa.types.is_time(data_type):
        return st.integers(0, PER_DAY[data_type.unit] - 1)
    return st.one_of(st.sampled_from([-(2**63), 2**63 - 1, 0]), st.integers(-(2**63), 2**63 - 1))


def _words(value_type: pa.DataType, target: Target) -> tuple[Value, ...]:
    if pa.types.is_boolean(value_type):
        return (True, False)
    if pa.types.is_integer(value_type) or pa.types.is_floating(value_type):
        return (0, 1, 7, 100)
    # In legacy files an empty word reads as null, which a required column then refuses.
    texts = tuple(w for w in WORDS if w or not target.is_legacy)
    if pa.types.is_binary(value_type) or pa.types.is_large_binary(value_type):
        return tuple(word.encode() for word in texts)
    return texts


def _dictionary_array(data_type: pa.DataType, items: Sequence[Value], target: Target) -> pa.Array:
    words = _words(data_type.value_type, target)
    used = words if target.is_legacy else tuple(w for w in words if w in items) or words[:1]
    indices = [None if item is None else used.index(item) for item in items]
    dictionary = pa.array(used, data_type.value_type)
    return pa.DictionaryArray.from_arrays(pa.array(indices, data_type.index_type), dictionary)


def _struct_array(data_type: pa.DataType, items: Sequence[Value], target: Target) -> pa.Array:
    members = [
        array_of(field.type, [None if i is None else i[place] for i in items], target)
        for place, field in enumerate(data_type)
    ]
    absent = pa.array([item is None for item in items], pa.bool_())
    return pa.StructArray.from_arrays(members, fields=list(data_type), mask=absent)


def _list_array(data_type: pa.DataType, items: Sequence[Value], target: Target) -> pa.Array:
    offsets, flat = _flattened(items)
    large = pa.types.is_large_list(data_type)
    make = pa.LargeListArray if large else pa.ListArray
    return make.from_arrays(
        pa.array(offsets, pa.int64() if large else pa.int32()),
        array_of(data_type.value_type, flat, target),
        type=data_type,
        mask=pa.array([item is None for item in items], pa.bool_()),
    )


def _map_array(data_type: pa.DataType, items: Sequence[Value], target: Target) -> pa.Array:
    offsets, flat = _flattened(items)
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()),
        array_of(data_type.key_type, [entry[0] for entry in flat], target),
        array_of(data_type.item_type, [entry[1] for entry in flat], target),
        type=data_type,
        mask=pa.array([item is None for item in items], pa.bool_()),
    )


def _fixed_size_list_array(
    data_type: pa.DataType, items: Sequence[Value], target: Target
) -> pa.Array:
    absent = [None] * data_type.list_size
    flat = [value for item in items for value in (absent if item is None else item)]
    return pa.FixedSizeListArray.from_arrays(
        array_of(data_type.value_type, flat, target),
        type=data_type,
        mask=pa.array([item is None for item in items], pa.bool_()),
    )


def _flattened(items: Sequence[Value]) -> tuple[list[int], list[Value]]:
    offsets: list[int] = [0]
    flat: list[Value] = []
    for item in items:
        flat.extend(item or ())
        offsets.append(len(flat))
    return offsets, flat
