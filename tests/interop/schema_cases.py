"""Arrow schemas for comparing libraries: one per type, flag and special case."""

from __future__ import annotations

import pyarrow as pa

NAME, PARAMETERS = "ARROW:extension:name", "ARROW:extension:metadata"
KEY = "lance-schema:unenforced-primary-key"
field = pa.field
PAIR = pa.struct([field("x", pa.int32()), field("y", pa.string(), nullable=False)])
BLOB_MEMBERS = [
    *(field("data", pa.large_binary()), field("uri", pa.string())),
    *(field("position", pa.uint64()), field("size", pa.uint64())),
]
UNITS = ("s", "ms", "us", "ns")


def extension(name: str, parameters: str | None = "", **rest: str) -> dict[str, str]:
    """Return metadata that names an extension type."""
    metadata = {NAME: name, **rest}
    return metadata if parameters is None else {**metadata, PARAMETERS: parameters}


def marked(name: str, field_id: object) -> pa.Field:
    """Return a field that asks for an id."""
    return field(name, pa.int8(), metadata={"lance:field_id": str(field_id)})


BFLOAT16 = field("item", pa.binary(2), metadata=extension("lance.bfloat16"))
JSON_TEXT = field("j", pa.string(), metadata=extension("arrow.json"))

TYPES = [
    *(pa.null(), pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32()),
    *(pa.uint32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    *(pa.string_view(), pa.binary_view(), pa.list_(pa.string_view())),
    *(pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(10, 2), pa.decimal128(38, -3)),
    *(pa.decimal256(50, 5), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms")),
    *(pa.time64("us"), pa.time64("ns"), *(pa.duration(u) for u in UNITS)),
    *(pa.timestamp(u) for u in UNITS),
    *(pa.timestamp("us", "UTC"), pa.timestamp("us", "+05:30"), pa.timestamp("us", "-")),
    *(pa.month_day_nano_interval(), pa.binary(0), pa.binary(16)),
    *(pa.list_(pa.float32(), 4), pa.list_(pa.float32(), 0), pa.list_(pa.list_(pa.int8(), 2), 3)),
    *(pa.list_(pa.bool_(), 8), pa.list_(pa.string(), 2), pa.list_(pa.decimal128(5, 1), 2)),
    *(pa.list_(pa.date32(), 2), pa.list_(pa.timestamp("us", "+05:30"), 2)),
    *(pa.list_(pa.list_(pa.int8()), 2), pa.list_(pa.map_(pa.string(), pa.int8()), 2)),
    *(pa.list_(field("el", pa.float32(), False, {"a": "b"}), 4), pa.list_(PAIR, 2)),
    *(pa.list_(field("q", PAIR, False, {"m": "1"}), 2), pa.list_(pa.list_(PAIR, 2), 3)),
    *(pa.list_(BFLOAT16, 4), pa.list_(BFLOAT16), pa.list_(pa.list_(BFLOAT16, 4), 2)),
    *(pa.struct([]), pa.struct([field("x", pa.int32()), field("s", PAIR)])),
    *(pa.struct([field("a.b", pa.int8())]), pa.struct([field("a", pa.int8())] * 2)),
    *(pa.list_(pa.int32()), pa.list_(field("el", pa.int32(), False, {"k": "v"}))),
    *(pa.list_(PAIR), pa.large_list(pa.int32()), pa.large_list(PAIR), pa.list_(pa.list_(PAIR))),
    *(pa.list_view(pa.int32()), pa.large_list_view(pa.int32())),
    *(pa.map_(pa.string(), PAIR), pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
    pa.map_(field("kk", pa.string(), False, {"m": "1"}), field("vv", pa.int32(), False)),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.uint8(), pa.int64())),
    *(pa.dictionary(pa.int8(), pa.large_string(), ordered=True), pa.list_(PAIR, 1)),
    *(pa.dictionary(pa.int8(), pa.date32()), pa.dictionary(pa.int8(), pa.string_view())),
    *(pa.dictionary(pa.int8(), pa.list_(pa.int8())), pa.dictionary(pa.int8(), pa.bool_())),
    pa.run_end_encoded(pa.int32(), pa.string()),
    *(pa.uuid(), pa.bool8(), pa.opaque(pa.int32(), "t", "v"), pa.opaque(PAIR, "t", "v")),
    *(pa.fixed_shape_tensor(pa.float32(), [2, 3]), pa.list_(pa.opaque(PAIR, "t", "v"))),
    *(pa.list_(pa.uuid()), pa.list_(pa.uuid(), 2), pa.map_(pa.string(), pa.uuid())),
    *(pa.struct([JSON_TEXT]), pa.list_(pa.struct([JSON_TEXT]), 2)),
]

CASES: dict[str, pa.Schema] = {f"type {t}": pa.schema([field("c", t)]) for t in TYPES}
CASES |= {
    f"json of {t}": pa.schema([field("c", pa.json_(t), metadata={"k": "v"})])
    for t in (pa.string(), pa.large_string(), pa.string_view())
}
CASES |= {
    f"{name} over {dtype}": pa.schema([field("c", dtype, metadata=extension(name, parameters))])
    for name, dtype, parameters in [
        ("nobody.knows", pa.int32(), "xx"),
        ("nobody.knows", pa.int8(), None),
        ("arrow.uuid", pa.binary(16), None),
        ("arrow.json", pa.large_string(), None),
        ("lance.json", pa.large_binary(), None),
        ("lance.json", pa.string(), None),
        ("lance.bfloat16", pa.binary(2), ""),
        ("lance.blob.v2", pa.struct(BLOB_MEMBERS), ""),
    ]
}
CASES |= {
    f"key {value!r}": pa.schema([field("c", pa.int32(), False, {KEY: value})])
    for value in ("true", "YES", "1", "on", "y", "false", "", "t")
}
CASES |= {
    f"key at {value!r}": pa.schema([field("c", pa.int32(), False, {f"{KEY}:position": value})])
    for value in ("1", "0", "+3", "-1", "x", " 4", "4294967295", "4294967296")
}
CASES |= {
    f"id {value!r}": pa.schema([marked("a", value), field("b", pa.int8())])
    for value in ("7", "+7", "-1", "x", "", " 7", "2147483647", "2147483648")
}
_KEY_MEMBER = field("x", pa.int32(), False, {KEY: "true"})
_NUMBERED = pa.struct([marked("x", 3), field("y", pa.int8())])
CASES |= {
    "not null": pa.schema([field("c", pa.int32(), nullable=False)]),
    "metadata": pa.schema([field("c", pa.int8(), metadata={"a": "b", "z": ""})], {"s": "t"}),
    "parameters only": pa.schema([field("c", pa.int8(), metadata={PARAMETERS: "q"})]),
    "blob": pa.schema([field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]),
    "packed": pa.schema([field("c", PAIR, metadata={"packed": "true"})]),
    "key both ways": pa.schema(
        [field("c", pa.int8(), False, {KEY: "false", f"{KEY}:position": "2"})]
    ),
    "key nullable": pa.schema([field("c", pa.int8(), metadata={KEY: "true"})]),
    "key struct": pa.schema([field("c", PAIR, False, {KEY: "true"})]),
    "key member": pa.schema([field("c", pa.struct([_KEY_MEMBER]), False)]),
    "key below null": pa.schema([field("c", pa.struct([_KEY_MEMBER]))]),
    "key in list": pa.schema([field("c", pa.list_(_KEY_MEMBER), False)]),
    "key in map": pa.schema([field("c", pa.map_(_KEY_MEMBER, pa.int8()), False)]),
    "key in struct list": pa.schema(
        [field("c", pa.list_(field("item", pa.struct([_KEY_MEMBER]), False), 2), False)]
    ),
    "dot": pa.schema([field("a.b", pa.int8())]),
    "twice": pa.schema([field("a", pa.int8()), field("a", pa.int8())]),
    "case": pa.schema([field("a", pa.int8()), field("A", pa.int8())]),
    "no name": pa.schema([field("", pa.int8())]),
    "no fields": pa.schema([]),
    "odd name": pa.schema([field("a`b", pa.int8()), field("ü", pa.int8())]),
    "row id": pa.schema([field("_rowid", pa.int8())]),
    "row version": pa.schema([field("_row_created_at_version", pa.int8())]),
    "distance": pa.schema([field("_distance", pa.int8())]),
    "ids": pa.schema([marked("a", 7), field("b", pa.int8()), field("s", _NUMBERED)]),
    "ids twice": pa.schema([marked("a", 3), field("s", _NUMBERED)]),
}


def arrived(schema: pa.Schema) -> pa.Schema:
    """Return the schema as another process gets it: extension types are resolved on the way."""
    return pa.ipc.read_schema(schema.serialize())


CASES = {name: arrived(schema) for name, schema in CASES.items()}
