"""Exact sums without overflow, split into pieces that fit Spark's types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

_INT64_MAX = (1 << 63) - 1
_MOST_DIGITS = 38
_HALF_BITS = 32
_LOW_MASK = (1 << _HALF_BITS) - 1
# As many values below this as a partition can have rows add up to less than 2^63.
_SMALL = 1 << 31
_EXACT = Context(prec=_MOST_DIGITS * 2)


def can_sum(dtype: pa.DataType) -> bool:
    """Whether sums of this type are added up here as Spark does it."""
    if pa.types.is_decimal128(dtype):
        # Spark adds ten digits to the type of a sum; with more there is nothing left to add.
        return bool(dtype.precision <= _MOST_DIGITS - 10 and dtype.scale >= 0)
    return bool(pa.types.is_signed_integer(dtype)) or dtype in (pa.float32(), pa.float64())


def sum_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of Spark's partial sums."""
    if pa.types.is_integer(dtype):
        return pa.int64()
    return dtype if pa.types.is_decimal(dtype) else pa.float64()


def sum_column(name: str, column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """Return the columns whose plain sums make up the exact sum of a column."""
    dtype = column.type
    if pa.types.is_decimal(dtype):
        return {name: column.cast(pa.decimal128(_MOST_DIGITS, dtype.scale))}
    if pa.types.is_floating(dtype):
        return {name: column.cast(pa.float64())}
    if not pa.types.is_int64(dtype):
        return {name: column.cast(pa.int64())}
    if _is_small(column):
        return {name: column, f"{name} high": pa.nulls(len(column), pa.int64())}
    high = pc.shift_right(column, _HALF_BITS)
    return {name: pc.bit_wise_and(column, _LOW_MASK), f"{name} high": high}


def pieces(total: int, bound: int) -> Iterator[tuple[int, int]]:
    """Cut a number into parts that are no larger than `bound`: each part, and how many of it."""
    sign = 1 if total >= 0 else -1
    times, rest = divmod(abs(total), bound)
    if times:
        yield sign * bound, times
    if rest:
        yield sign * rest, 1


@dataclass(frozen=True, slots=True)
class Sum:
    """Sums of a column, one per group, in the type of the column's values."""

    dtype: pa.DataType
    low: pa.ChunkedArray
    high: pa.ChunkedArray | None

    @property
    def bound(self) -> int:
        """The largest sum, unscaled, that fits into one row for Spark."""
        if pa.types.is_decimal(self.dtype):
            return int(10**self.dtype.precision) - 1
        return _INT64_MAX

    def fitting(self) -> pa.ChunkedArray:
        """Return the sums, null where they are too large for one row."""
        target = sum_type(self.dtype)
        large = dict(self.too_large())
        if not large and self._has_no_high:
            return self.low.cast(target)
        values = [
            None if row in large or total is None else self._scaled(total)
            for row, total in enumerate(self._totals())
        ]
        return pa.chunked_array([pa.array(values, target)])

    def too_large(self) -> Iterator[tuple[int, int]]:
        """Yield the rows whose sum is too large, with the sum, unscaled."""
        if pa.types.is_floating(self.dtype) or (self._has_no_high and not self._may_be_large):
            return
        for row, total in enumerate(self._totals()):
            if total is not None and abs(total) > self.bound:
                yield row, total

    def scaled(self, total: int) -> pa.Scalar:
        """Return a piece of a sum as a value."""
        return pa.scalar(self._scaled(total), sum_type(self.dtype))

    @property
    def _has_no_high(self) -> bool:
        return self.high is None or self.high.null_count == len(self.high)

    @property
    def _may_be_large(self) -> bool:
        if not pa.types.is_decimal(self.dtype):
            return False
        largest = pc.max(pc.abs(self.low)).as_py()
        return largest is not None and self._unscaled(largest) > self.bound

    def _totals(self) -> Iterator[int | None]:
        highs = [None] * len(self.low) if self.high is None else self.high.to_pylist()
        for low, high in zip(self.low.to_pylist(), highs, strict=True):
            if low is None:
                yield None
            else:
                yield self._unscaled(low) + ((high or 0) << _HALF_BITS)

    def _unscaled(self, value: int | Decimal) -> int:
        if isinstance(value, Decimal):
            return int(value.scaleb(self.dtype.scale, _EXACT))
        return value

    def _scaled(self, total: int) -> int | Decimal:
        if pa.types.is_decimal(self.dtype):
            return Decimal(total).scaleb(-self.dtype.scale, _EXACT)
        return total


def _is_small(column: pa.ChunkedArray) -> bool:
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is None or (low > -_SMALL and high < _SMALL)
