"""Compare the rows of two DataFrames in any order."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Row


def bag(frame: DataFrame) -> Counter[Any]:
    """Return the rows with how often each occurs; numbers that are not numbers are equal."""
    return Counter(_plain(row) for row in frame.collect())


def _plain(value: Any) -> Any:
    match value:
        case Row() | tuple() | list():
            return tuple(_plain(item) for item in value)
        case dict():
            return tuple(sorted((_plain(k), _plain(v)) for k, v in value.items()))
        case float() if math.isnan(value):
            return "NaN"
        case float():
            # Sums of floating-point numbers depend on the order in which tasks end.
            return float(f"{value:.12g}") + 0.0
        case Decimal():
            return ("decimal", value)
        case bytearray():
            return bytes(value)
        case _:
            return value
