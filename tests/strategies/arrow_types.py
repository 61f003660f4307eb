"""Strategies for Arrow fields of every logical type of the format."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.strategies.target import Target

BFLOAT16 = {b"ARROW:extension:name": b"lance.bfloat16", b"ARROW:extension:metadata": b""}
PACKED = {b"lance-encoding:packed": b"true"}
MAX_DEPTH = 3
INDEX_TYPES = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
)
UNITS = ("s", "ms", "us", "ns")
MEMBER_NAMES = ("x", "y", "Upper", "ärger", "with space", "_low")

Fields = SearchStrategy[pa.Field]
Types = SearchStrategy[pa.DataType]


def is_bfloat16(field: pa.Field) -> bool:
    """True for a bfloat16 field, spelled as storage and metadata."""
    return (field.metadata or {}).get(b"ARROW:extension:name") == b"lance.bfloat16"


def decimals() -> Types:
    """Draw 128 and 256 bit decimals, negative scales included."""
    narrow = st.builds(pa.decimal128, st.integers(1, 38), st.integers(-3, 38))
    wide = st.builds(pa.decimal256, st.integers(1, 76), st.integers(-3, 76))
    return st.one_of(narrow, wide).filter(_is_buildable)


def _is_buildable(data_type: pa.DataType) -> bool:
    """False where pyarrow cannot make the largest value: it writes out a negative scale's zeros."""
    digits = 38 if pa.types.is_decimal128(data_type) else 76
    fits = data_type.precision - min(data_type.scale, 0) <= digits
    return bool(fits and data_type.scale <= data_type.precision)


def timestamps(target: Target) -> Types:
    """Draw timestamps with and without zones."""
    zones = [None, "UTC", "America/New_York", "Asia/Kolkata"]
    if target.holds_offset_zones:
        zones.append("+05:30")
    return st.builds(pa.timestamp, st.sampled_from(UNITS), st.sampled_from(zones))


def fixed_width(target: Target) -> Types:
    """Draw types whose values all have one size."""
    plain = st.sampled_from(
        [
            pa.bool_(),
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float16(), pa.float32(), pa.float64()),
            *(pa.date32(), pa.date64()),
            *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        ]
    )
    durations = st.builds(pa.duration, st.sampled_from(UNITS))
    binaries = st.builds(pa.binary, st.integers(1, 20))
    return st.one_of(plain, durations, binaries, decimals(), timestamps(target))


def variable_width() -> Types:
    """Draw strings and binaries."""
    return st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])


def dictionaries(target: Target) -> Types:
    """Draw dictionary types, unordered because the format drops the flag."""
    values = st.sampled_from(target.dictionary_values)
    return st.builds(pa.dictionary, st.sampled_from(INDEX_TYPES), values)


def arrow_types(target: Target) -> Types:
    """Draw any type the target holds at top level; bfloat16 exists as a field only."""
    return fields(target, "c").map(lambda field: field.type)


@st.composite
def fields(
    draw: DrawFn, target: Target, name: str, *, depth: int = 0, may_be_required: bool = True
) -> pa.Field:
    """Draw a field: leaves and nested types; required only where no parent can be null."""
    nullable = draw(st.booleans()) or draw(st.booleans()) if may_be_required else True
    makers = [_leaf, _leaf, _fixed_size_list]
    if depth < MAX_DEPTH - 1:
        makers += [_struct, _list]
        if target.holds_maps:
            makers.append(_map)
    maker = draw(st.sampled_from(makers))
    return draw(maker(target, name, nullable, depth))


@st.composite
def _leaf(draw: DrawFn, target: Target, name: str, nullable: bool, depth: int) -> pa.Field:
    plain = [fixed_width(target), variable_width()]
    if depth == 0 or target.holds_nested_dictionaries:
        plain.append(dictionaries(target))
    data_type = draw(st.one_of(*plain, st.sampled_from(["null", "json", "bfloat16"])))
    metadata = draw(st.sampled_from([None, None, None, {b"unit": b"m", b"note": b""}]))
    if data_type == "bfloat16":
        return pa.field(name, pa.binary(2), nullable, BFLOAT16)
    if data_type == "null":
        fits = depth == 0 or target.holds_nested_null_type
        return pa.field(name, pa.null() if fits else pa.int32())
    if data_type == "json":
        fits = target.holds_json if depth == 0 else target.holds_nested_json
        return pa.field(name, pa.json_() if fits else pa.string(), nullable)
    return pa.field(name, data_type, nullable, metadata)


@st.composite
def _struct(draw: DrawFn, target: Target, name: str, nullable: bool, depth: int) -> pa.Field:
    if target.holds_packed_structs and depth == 0 and draw(st.integers(0, 7)) == 0:
        whole_bytes = fixed_width(target).filter(lambda t: not pa.types.is_boolean(t))
        packed = draw(st.lists(whole_bytes, min_size=1, max_size=3))
        members = [pa.field(f"p{i}", t, nullable=False) for i, t in enumerate(packed)]
        return pa.field(name, pa.struct(members), nullable=False, metadata=PACKED)
    names = draw(st.lists(st.sampled_from(MEMBER_NAMES), min_size=1, max_size=3, unique=True))
    members = [
        draw(fields(target, n, depth=depth + 1, may_be_required=not nullable)) for n in names
    ]
    return pa.field(name, pa.struct(members), nullable)


@st.composite
def _list(draw: DrawFn, target: Target, name: str, nullable: bool, depth: int) -> pa.Field:
    item_name = "item"
    if target.holds_any_list_item:
        item_name = draw(st.sampled_from(["item", "item", "element"]))
    required = target.holds_any_list_item
    item = draw(fields(target, item_name, depth=depth + 1, may_be_required=required))
    if target.is_legacy:
        item = item.with_metadata(None)
    make = draw(st.sampled_from([pa.list_, pa.large_list]))
    return pa.field(name, make(item), nullable)


@st.composite
def _fixed_size_list(
    draw: DrawFn, target: Target, name: str, nullable: bool, depth: int
) -> pa.Field:
    size = draw(st.integers(1, 4))
    kinds = ["plain", "plain", "bfloat16", "nested"]
    if target.holds_structs_in_fixed_size_lists and depth == 0:
        kinds.append("struct")
    kind = draw(st.sampled_from(kinds))
    item = pa.field("item", draw(fixed_width(target)))
    if kind == "bfloat16":
        item = pa.field("item", pa.binary(2), metadata=BFLOAT16)
    elif kind == "nested":
        inner = draw(st.integers(1, 3))
        if target.holds_wide_nested_fixed_size_lists or size * inner * item.type.bit_width < 2048:
            item = pa.field("item", pa.list_(item, inner))
    elif kind == "struct":
        item = draw(_struct(target, "item", True, depth + 1))
    return pa.field(name, pa.list_(item, size), nullable)


@st.composite
def _map(draw: DrawFn, target: Target, name: str, nullable: bool, depth: int) -> pa.Field:
    keys = st.sampled_from([pa.string(), pa.int32(), pa.binary(3)])
    key = pa.field("key", draw(keys), nullable=False)
    value = draw(fields(target, "value", depth=depth + 1))
    return pa.field(name, pa.map_(key, value), nullable)


def members(field: pa.Field) -> list[pa.Field]:
    """Return the members of a struct field, none for any other."""
    return list(field.type) if pa.types.is_struct(field.type) else []
