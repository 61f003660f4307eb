"""Partial aggregates of a partition, computed on Arrow before any row reaches Spark.

Spark adds up what the partitions return, so a partition may return several rows for one group. It
does so when there are more groups than fit into memory, and when a sum does not fit into the type
of Spark's partial sums: the sum is then returned in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.scan.reduce.sums import Sum, pieces, sum_column

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
        held: list[pa.Table] = []
        for chunk in _chunks(batches):
            held.append(self._grouped(self._prepared(chunk), first=True))
            if sum(part.num_rows for part in held) > _MAX_GROUPS:
                merged = self._merged(held)
                held = [merged]
                if merged.num_rows > _MAX_GROUPS:
                    yield from self._finished(merged)
                    held = []
        if not held and not self.keys:
            held = [self._grouped(self._prepared(self.inputs.empty_table()), first=True)]
        if held:
            yield from self._finished(self._merged(held))

    def _merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len(parts) == 1:
            return parts[0]
        return self._grouped(pa.concat_tables(parts), first=False)

    def _parts(self) -> list[_Part]:
        found: list[_Part] = []
        for function in self.functions:
            found += _parts_of(function, self.inputs)
        return found

    def _prepared(self, chunk: pa.Table) -> pa.Table:
        """Return the keys and every column that is aggregated, under names of their own."""
        columns = {
            name: chunk.column(key) for name, key in zip(self.key_names, self.keys, strict=True)
        }
        for function in self.functions:
            columns |= _columns_of(function, chunk)
        return pa.table(columns)

    def _grouped(self, table: pa.Table, *, first: bool) -> pa.Table:
        parts = self._parts()
        wanted = [(p.name, p.first if first else p.merge) for p in parts]
        if not first:
            wanted = [(name, how if how != "count" else "sum") for name, how in wanted]
        result = table.group_by(list(self.key_names), use_threads=False).aggregate(wanted)
        names = [f"{name}_{how}" for name, how in wanted]
        ordered = result.select([*self.key_names, *names])
        return ordered.rename_columns([*self.key_names, *(p.name for p in parts)])

    def _finished(self, merged: pa.Table) -> Iterator[pa.RecordBatch]:
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
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _parts_of(function: Function, inputs: pa.Schema) -> list[_Part]:
    name, kind = function.name, function.kind
    if kind in (Kind.COUNT, Kind.COUNT_ALL):
        return [_Part(name=name, first="sum", merge="sum")]
    if kind is Kind.SUM:
        high = [_Part(name=f"{name} high", first="sum", merge="sum")]
        is_wide = pa.types.is_int64(inputs.field(function.column).type)
        return [_Part(name=name, first="sum", merge="sum"), *(high if is_wide else [])]
    found = [_Part(name=name, first=kind.value, merge=kind.value)]
    if pa.types.is_floating(inputs.field(function.column).type):
        found.append(_Part(name=f"{name} nan", first="any", merge="any"))
    return found


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
