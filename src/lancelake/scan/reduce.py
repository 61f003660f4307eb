"""Partial results that tasks compute: aggregates and top rows.

Spark adds up what the partitions return, so a partition may return several rows for one group. It
does so when there are more groups than fit into memory, and when a sum does not fit into the type
of Spark's partial sums: the sum is then returned in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.scan.request import Ordering

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
            None if row in large or total is None else self._scale(total)
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
        return pa.scalar(self._scale(total), sum_type(self.dtype))

    @property
    def _has_no_high(self) -> bool:
        return self.high is None or self.high.null_count == len(self.high)

    @property
    def _may_be_large(self) -> bool:
        if not pa.types.is_decimal(self.dtype):
            return False
        largest = pc.max(pc.abs(self.low)).as_py()
        return largest is not None and self._unscale(largest) > self.bound

    def _totals(self) -> Iterator[int | None]:
        highs = [None] * len(self.low) if self.high is None else self.high.to_pylist()
        for low, high in zip(self.low.to_pylist(), highs, strict=True):
            if low is None:
                yield None
            else:
                yield self._unscale(low) + ((high or 0) << _HALF_BITS)

    def _unscale(self, value: int | Decimal) -> int:
        if isinstance(value, Decimal):
            return int(value.scaleb(self.dtype.scale, _EXACT))
        return value

    def _scale(self, total: int) -> int | Decimal:
        if pa.types.is_decimal(self.dtype):
            return Decimal(total).scaleb(-self.dtype.scale, _EXACT)
        return total


def _is_small(column: pa.ChunkedArray) -> bool:
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is None or (low > -_SMALL and high < _SMALL)


_CHUNK_ROWS = 1 << 18
_MAX_GROUPS = 1 << 17


class Kind(Enum):
    """An aggregate function."""

    COUNT_ALL = "count_all"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An aggregate of a column, and the name of its result."""

    kind: Kind
    column: str | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A column that is aggregated as it is: `merge` joins results of `first`."""

    name: str
    first: str
    merge: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialAggregation:
    """Groups and aggregates over the columns of `inputs`; keys come out under `key_names`."""

    keys: tuple[str, ...]
    key_names: tuple[str, ...]
    functions: tuple[Function, ...]
    inputs: pa.Schema

    @property
    def counts_only(self) -> bool:
        """Whether only the number of rows matters."""
        return not self.keys and all(f.kind is Kind.COUNT_ALL for f in self.functions)

    def counted(self, rows: int) -> pa.RecordBatch:
        """Return the result where only the number of rows matters."""
        counts = [pa.array([rows], pa.int64()) for _ in self.functions]
        return pa.RecordBatch.from_arrays(counts, names=[f.name for f in self.functions])

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield partial results of all rows."""
        parts: list[pa.Table] = []
        for chunk in _chunks(batches):
            parts.append(self._group(self._prepare(chunk), first=True))
            if sum(part.num_rows for part in parts) > _MAX_GROUPS:
                merged = self._merge(parts)
                parts = [merged]
                if merged.num_rows > _MAX_GROUPS:
                    yield from self._finish(merged)
                    parts = []
        if not parts and not self.keys:
            parts = [self._group(self._prepare(self.inputs.empty_table()), first=True)]
        if parts:
            yield from self._finish(self._merge(parts))

    def _merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len(parts) == 1:
            return parts[0]
        return self._group(pa.concat_tables(parts), first=False)

    def _parts(self) -> list[_Part]:
        parts: list[_Part] = []
        for function in self.functions:
            parts += _parts_of(function, self.inputs)
        return parts

    def _prepare(self, chunk: pa.Table) -> pa.Table:
        """Return the keys and every column that is aggregated, under names of their own."""
        columns = {
            name: chunk.column(key) for name, key in zip(self.key_names, self.keys, strict=True)
        }
        for function in self.functions:
            columns |= _columns_of(function, chunk)
        return pa.table(columns)

    def _group(self, table: pa.Table, *, first: bool) -> pa.Table:
        parts = self._parts()
        wanted = [(p.name, p.first if first else p.merge) for p in parts]
        if not first:
            wanted = [(name, how if how != "count" else "sum") for name, how in wanted]
        result = table.group_by(list(self.key_names), use_threads=False).aggregate(wanted)
        names = [f"{name}_{how}" for name, how in wanted]
        ordered = result.select([*self.key_names, *names])
        return ordered.rename_columns([*self.key_names, *(p.name for p in parts)])

    def _finish(self, merged: pa.Table) -> Iterator[pa.RecordBatch]:
        values = {f.name: _value_of(f, merged, self.inputs) for f in self.functions}
        sums = {name: value for name, value in values.items() if isinstance(value, Sum)}
        columns = {name: merged.column(name) for name in self.key_names}
        columns |= {n: v.fitting() if isinstance(v, Sum) else v for n, v in values.items()}
        yield from pa.table(columns).combine_chunks().to_batches()
        for name, value in sums.items():
            yield from self._rest(merged, columns, name, value)

    def _rest(
        self, merged: pa.Table, columns: dict[str, pa.ChunkedArray], name: str, value: Sum
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pieces of sums that are too large for one row."""
        for row, total in value.too_large():
            for piece, times in pieces(total, value.bound):
                cells = {k: merged.column(k)[row] for k in self.key_names}
                for function in self.functions:
                    is_count = function.kind in (Kind.COUNT, Kind.COUNT_ALL)
                    nothing = pa.scalar(0 if is_count else None, columns[function.name].type)
                    cells[function.name] = value.scaled(piece) if function.name == name else nothing
                repeated = [pa.repeat(cell, times) for cell in cells.values()]
                yield pa.RecordBatch.from_arrays(repeated, names=list(cells))


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.Table.from_batches(pending)
            pending, rows = [], 0
    if rows:
        yield pa.Table.from_batches(pending)


def _parts_of(function: Function, inputs: pa.Schema) -> list[_Part]:
    name, kind = function.name, function.kind
    if kind in (Kind.COUNT, Kind.COUNT_ALL):
        return [_Part(name=name, first="sum", merge="sum")]
    if kind is Kind.SUM:
        high = [_Part(name=f"{name} high", first="sum", merge="sum")]
        is_wide = pa.types.is_int64(inputs.field(function.column).type)
        return [_Part(name=name, first="sum", merge="sum"), *(high if is_wide else [])]
    parts = [_Part(name=name, first=kind.value, merge=kind.value)]
    if pa.types.is_floating(inputs.field(function.column).type):
        parts.append(_Part(name=f"{name} nan", first="any", merge="any"))
    return parts


def _columns_of(function: Function, chunk: pa.Table) -> dict[str, pa.ChunkedArray]:
    name = function.name
    if function.column is None:
        return {name: pa.repeat(pa.scalar(1, pa.int64()), chunk.num_rows)}
    column = chunk.column(function.column)
    match function.kind:
        case Kind.COUNT | Kind.COUNT_ALL:
            return {name: column.is_valid().cast(pa.int64())}
        case Kind.SUM:
            return sum_column(name, column)
        case _:
            if not pa.types.is_floating(column.type):
                return {name: column}
            is_nan = pc.is_nan(column)
            values = pc.if_else(pc.fill_null(is_nan, False), pa.scalar(None, column.type), column)
            return {name: values, f"{name} nan": is_nan}


def _value_of(function: Function, merged: pa.Table, inputs: pa.Schema) -> pa.ChunkedArray | Sum:
    column = merged.column(function.name)
    if function.kind in (Kind.COUNT, Kind.COUNT_ALL):
        return pc.fill_null(column, 0)
    dtype = inputs.field(function.column).type
    if function.kind is Kind.SUM:
        high = f"{function.name} high"
        return Sum(dtype, column, merged.column(high) if high in merged.column_names else None)
    if not pa.types.is_floating(dtype):
        return column
    # To Spark, not a number is larger than any number.
    has_nan = pc.fill_null(merged.column(f"{function.name} nan"), False)
    if function.kind is Kind.MIN:
        has_nan = pc.and_(has_nan, column.is_null())
    return pc.if_else(has_nan, pa.scalar(float("nan"), dtype), column)


_TOP_CHUNK_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRows:
    """The first `count` rows by these keys."""

    keys: tuple[Ordering, ...]
    count: int

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the first rows; rows that tie with the last one may be left out."""
        pending: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            pending.append(batch)
            rows += batch.num_rows
            if rows >= _TOP_CHUNK_ROWS + self.count:
                pending = self._first(pending)
                rows = sum(part.num_rows for part in pending)
        if pending:
            yield from self._first(pending)

    def _first(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        columns: dict[str, pa.ChunkedArray] = {}
        orders: list[tuple[str, str]] = []
        for number, key in enumerate(self.keys):
            values = table[key.column]
            if values.null_count:
                # Arrow has one place for the nulls of all keys before release 25.
                columns[f"{number} is null"] = values.is_null()
                orders.append((f"{number} is null", _order(ascending=not key.nulls_first)))
            columns[str(number)] = values
            orders.append((str(number), _order(ascending=key.ascending)))
        places = pc.sort_indices(pa.table(columns), sort_keys=orders)
        first: list[pa.RecordBatch] = (
            table.take(places.slice(0, self.count)).combine_chunks().to_batches()
        )
        return first


def _order(*, ascending: bool) -> str:
    return "ascending" if ascending else "descending"


def can_sort(dtype: pa.DataType) -> bool:
    """Whether Arrow sorts values of this type as Spark does."""
    exact = pa.types.is_integer(dtype) or pa.types.is_decimal128(dtype)
    text = dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return bool(exact or text or pa.types.is_temporal(dtype))
