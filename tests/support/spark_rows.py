"""A table with a column of every kind and the values that are easy to get wrong."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

INT32 = [0, 1, -1, 7, 2**31 - 1, -(2**31), None, 42]
INT64 = [0, 1, -1, 2**40, -(2**40), 2**62, None, 99, 5]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, -math.nan, math.inf, -math.inf, None, 0.1, 1e300]
TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    "a%c",
    "a_c",
    "it's",
    'quo"te',
    "zürich",
    "z",
    None,
    "back\\s",
    "ab",
]
DECIMALS = [Decimal("0.00"), Decimal("12345678.91"), Decimal("-0.01"), None, Decimal("99999999.99")]
DATES = [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]
TIMES = [
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC),
    None,
]
BYTES = [b"", b"\x00", b"\xff\x00", b"abc", None]
FLAGS = [True, False, None]

_INNER = pa.struct([("q", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("n", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("w", pa.timestamp("us")),
        pa.field("b", pa.binary()),
        pa.field("ok", pa.bool_()),
        pa.field("k", pa.int8()),
        pa.field("h", pa.int16()),
        pa.field(
            "st",
            pa.struct(
                [("x", pa.int64()), ("y", pa.string()), ("z", pa.struct([("q", pa.int32())]))]
            ),
        ),
        pa.field("xs", pa.list_(pa.int32())),
        pa.field("ps", pa.list_(pa.struct([("u", pa.int32()), ("v", pa.string())]))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
    ]
)


def rows(count: int) -> pa.Table:
    """Return rows in which every value of every list occurs, beside many others."""
    return pa.Table.from_pylist([_row(i) for i in range(count)], schema=SCHEMA)


def _row(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "i": INT32[i % len(INT32)],
        "l": INT64[i % len(INT64)],
        "f": _float32(FLOATS[(i * 3) % len(FLOATS)]),
        "d": FLOATS[i % len(FLOATS)],
        "s": TEXTS[i % len(TEXTS)],
        "n": DECIMALS[i % len(DECIMALS)],
        "day": DATES[i % len(DATES)],
        "t": TIMES[i % len(TIMES)],
        "w": _naive(TIMES[(i + 1) % len(TIMES)]),
        "b": BYTES[i % len(BYTES)],
        "ok": FLAGS[i % len(FLAGS)],
        "k": None if i % 11 == 0 else i % 100 - 50,
        "h": i - 100,
        "st": None if i % 7 == 0 else _struct(i),
        "xs": None if i % 13 == 0 else list(range(i % 4)),
        "ps": None if i % 17 == 0 else [{"u": j, "v": str(j)} for j in range(i % 3)],
        "m": None if i % 19 == 0 else [(f"key{j}", j) for j in range(i % 3)],
    }


def _struct(i: int) -> dict[str, Any]:
    inner = None if i % 5 == 0 else {"q": i % 10}
    return {"x": None if i % 3 == 0 else i, "y": TEXTS[i % len(TEXTS)], "z": inner}


def _float32(value: float | None) -> float | None:
    return 0.25 if value == 1e300 else value


def _naive(value: dt.datetime | None) -> dt.datetime | None:
    return None if value is None else value.replace(tzinfo=None)
