"""Rows with a column of every type that both Spark and tables have, with nulls at every level."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

INTS = {
    "i8": [0, 1, -1, 127, -128, 7],
    "i16": [0, 1, -1, 32767, -32768, 300],
    "i32": [0, 1, -1, 7, 42, 2**31 - 1, -(2**31)],
    "i64": [0, 1, -1, 99, 2**40, -(2**40), 2**53 + 1],
}
FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, 2.5e-3, math.nan, math.inf, -math.inf, 1024.0, 3.0]
SHORT_DECIMALS = ["0.00", "1.50", "-1.50", "999.99", "-999.99", "0.01"]
LONG_DECIMALS = [
    "0.000000000000000000",
    "1.500000000000000000",
    "-0.000000000000000001",
    "12345678901234567890.123456789012345678",
    "-99999999999999999999.999999999999999999",
]
TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "abc",
    "ABC",
    "a%c",
    "a_c",
    "it's",
    "zürich",
    "Zürich",
    "日本語",
    "🦀🚀",
    "e\u0301",
    "12",
    "back\\s",
    "line\nbreak",
    "long " * 60,
]
BYTES = [b"", b"\x00", b"\xff\x00", b"abc", bytes(range(40))]
DATES = [
    dt.date(1970, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    dt.date(1582, 10, 15),
]
TIMES = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12, 30, 15, 123456),
    dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    dt.datetime(2262, 4, 12),
]
LAPSES = [
    dt.timedelta(0),
    dt.timedelta(days=1, microseconds=1),
    dt.timedelta(hours=-5),
    dt.timedelta(days=900),
]
CLOCKS = [dt.time(0), dt.time(12, 30, 15, 123456), dt.time(23, 59, 59, 999999)]

_PAIR = pa.struct([("u", pa.int32()), ("v", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("bo", pa.bool_()),
        pa.field("i8", pa.int8()),
        pa.field("i16", pa.int16()),
        pa.field("i32", pa.int32()),
        pa.field("i64", pa.int64()),
        pa.field("f32", pa.float32()),
        pa.field("f64", pa.float64()),
        pa.field("d5", pa.decimal128(5, 2)),
        pa.field("d38", pa.decimal128(38, 18)),
        pa.field("s", pa.string()),
        pa.field("bin", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("ntz", pa.timestamp("us")),
        pa.field("lapse", pa.duration("us")),
        pa.field("clock", pa.time64("ns")),
        pa.field(
            "st",
            pa.struct(
                [
                    ("x", pa.int32()),
                    ("y", pa.string()),
                    ("z", pa.struct([("q", pa.float64()), ("w", pa.list_(pa.int32()))])),
                ]
            ),
        ),
        pa.field("xs", pa.list_(pa.int32())),
        pa.field("ss", pa.list_(pa.string())),
        pa.field("ps", pa.list_(_PAIR)),
        pa.field("xx", pa.list_(pa.list_(pa.int64()))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("mm", pa.map_(pa.int32(), pa.struct([("a", pa.date32()), ("b", _PAIR)]))),
        pa.field("sm", pa.struct([("m", pa.map_(pa.string(), _PAIR)), ("d", pa.decimal128(5, 2))])),
    ]
)
OTHER = pa.schema(
    [("k", pa.int32()), ("name", pa.string()), ("g", pa.string()), ("w", pa.float64())]
)


class _Chance:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def null_or(self, make: Callable[[], Any], share: float = 0.15) -> Any:
        return None if self.random.random() < share else make()

    def of(self, values: Sequence[Any]) -> Any:
        return self.null_or(lambda: self.random.choice(values))

    def some(self, make: Callable[[], Any], most: int = 3) -> Any:
        return self.null_or(lambda: [make() for _ in range(self.random.randint(0, most))])

    def keyed(self, keys: Sequence[Any], make: Callable[[], Any]) -> Any:
        def chosen() -> list[tuple[Any, Any]]:
            count = self.random.randint(0, len(keys))
            return [(key, make()) for key in self.random.sample(list(keys), count)]

        return self.null_or(chosen)

    def pair(self) -> Any:
        return self.null_or(lambda: {"u": self.of(INTS["i32"]), "v": self.of(TEXTS)})


def rows(count: int, seed: int = 1) -> pa.Table:
    """Return `count` rows; the same seed makes the same rows."""
    chance = _Chance(seed)
    return pa.Table.from_pylist([_row(chance, i) for i in range(count)], schema=SCHEMA)


def other_rows(count: int) -> pa.Table:
    """Return a small table to join with."""
    chance = _Chance(7)
    values = [
        {
            "k": None if i % 13 == 12 else i - 4,
            "name": chance.of(TEXTS),
            "g": "abc"[i % 3],
            "w": chance.of(FLOATS),
        }
        for i in range(count)
    ]
    return pa.Table.from_pylist(values, schema=OTHER)


def _row(chance: _Chance, i: int) -> dict[str, Any]:
    return {
        "id": i,
        "bo": chance.of([True, False]),
        **{name: chance.of(values) for name, values in INTS.items()},
        "i32": chance.of([*INTS["i32"], i % 20, i % 7]),
        "f32": chance.of(FLOATS),
        "f64": chance.of(FLOATS),
        "d5": chance.of([Decimal(text) for text in SHORT_DECIMALS]),
        "d38": chance.of([Decimal(text) for text in LONG_DECIMALS]),
        "s": chance.of(TEXTS),
        "bin": chance.of(BYTES),
        "day": chance.of(DATES),
        "ts": chance.of([time.replace(tzinfo=dt.UTC) for time in TIMES]),
        "ntz": chance.of(TIMES),
        "lapse": chance.of(LAPSES),
        "clock": chance.of(CLOCKS),
        "st": chance.null_or(lambda: _struct(chance)),
        "xs": chance.some(lambda: chance.of([*INTS["i8"], i % 5])),
        "ss": chance.some(lambda: chance.of(TEXTS)),
        "ps": chance.some(chance.pair),
        "xx": chance.some(lambda: chance.some(lambda: chance.of(INTS["i64"]))),
        "m": chance.keyed(["k1", "k2", ""], lambda: chance.of(INTS["i32"])),
        "mm": chance.keyed([1, 2], lambda: chance.null_or(lambda: _deep(chance))),
        "sm": chance.null_or(lambda: _mapping(chance)),
    }


def _struct(chance: _Chance) -> dict[str, Any]:
    def inner() -> dict[str, Any]:
        return {"q": chance.of(FLOATS), "w": chance.some(lambda: chance.of(INTS["i8"]))}

    return {"x": chance.of(INTS["i32"]), "y": chance.of(TEXTS), "z": chance.null_or(inner)}


def _deep(chance: _Chance) -> dict[str, Any]:
    return {"a": chance.of(DATES), "b": chance.pair()}


def _mapping(chance: _Chance) -> dict[str, Any]:
    decimal = chance.of([Decimal(text) for text in SHORT_DECIMALS])
    return {"m": chance.keyed(["k1", "k2"], chance.pair), "d": decimal}
