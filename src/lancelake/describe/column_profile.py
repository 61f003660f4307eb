"""Profile of columns: nulls, distinct values, bounds and distribution, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.index.scalar.bloom_filter import has_hash, hashes_of

_BINS = 16
_SAMPLE = 20_000
_REGISTER_BITS = 12
_REGISTERS = 1 << _REGISTER_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """Facts about a column; None where its type has no such fact.

    `distinct` is an estimate, within about 2 %. `histogram` counts values of a sample in intervals
    of equal width between `minimum` and `maximum`; for text and lists it counts their lengths.
    """

    name: str
    type: pa.DataType
    rows: int
    nulls: int
    distinct: int | None
    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    histogram: tuple[int, ...] | None


def profile(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> tuple[ColumnProfile, ...]:
    """Read a stream once and return the profile of each column."""
    columns = [_Column(name=each.name, type=each.type) for each in schema]
    for batch in batches:
        for column, values in zip(columns, batch.columns, strict=True):
            column.add(values)
    return tuple(column.profile() for column in columns)


@dataclass(slots=True, kw_only=True)
class _Column:
    """A column while it is read; memory does not grow with its rows."""

    name: str
    type: pa.DataType
    rows: int = 0
    nulls: int = 0
    minimum: pa.Scalar | None = None
    maximum: pa.Scalar | None = None
    _registers: npt.NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(_REGISTERS, dtype=np.uint8)
    )
    _sample: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _sampled: int = 0
    _step: int = 1

    def add(self, values: pa.Array) -> None:
        """Take the values of a batch into account."""
        if isinstance(values.type, pa.ExtensionType):
            values = values.storage
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        self.rows += len(values)
        self.nulls += values.null_count
        present = values.drop_null()
        if not len(present):
            return
        if _is_ordered(values.type):
            self._bound(present)
        if has_hash(values.type):
            self._count(hashes_of(present))
        for numbers in _numbers(present):
            self._keep(numbers)

    def profile(self) -> ColumnProfile:
        """Return the facts."""
        has_distinct = has_hash(_storage_type(self.type))
        return ColumnProfile(
            name=self.name,
            type=self.type,
            rows=self.rows,
            nulls=self.nulls,
            distinct=min(self._distinct(), self.rows - self.nulls) if has_distinct else None,
            minimum=self.minimum,
            maximum=self.maximum,
            histogram=self._histogram(),
        )

    def _bound(self, present: pa.Array) -> None:
        if pa.types.is_floating(present.type):
            present = present.filter(pc.invert(pc.is_nan(present)))
        if not len(present):
            return
        bounds = pc.min_max(present)
        least, most = bounds["min"], bounds["max"]
        if self.minimum is None or pc.less(least, self.minimum).as_py():
            self.minimum = least
        if self.maximum is None or pc.greater(most, self.maximum).as_py():
            self.maximum = most

    def _count(self, hashes: npt.NDArray[np.uint64]) -> None:
        """Record hashes in the registers of a HyperLogLog."""
        register = (hashes >> np.uint64(64 - _REGISTER_BITS)).astype(np.int64)
        rest = (hashes << np.uint64(_REGISTER_BITS)) | np.uint64(_REGISTERS - 1)
        # The exponent of a float is the position of the highest bit; rounding up is harmless.
        leading = 64 - np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._registers, register, (leading + 1).clip(1, 64).astype(np.uint8))

    def _distinct(self) -> int:
        weights = np.exp2(-self._registers.astype(np.float64))
        estimate = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS**2 / float(weights.sum())
        empty = int((self._registers == 0).sum())
        if empty and estimate <= 2.5 * _REGISTERS:
            return round(_REGISTERS * float(np.log(_REGISTERS / empty)))
        return round(estimate)

    def _keep(self, numbers: npt.NDArray[np.float64]) -> None:
        """Keep every nth value; n doubles when there are too many."""
        sampled = numbers[:: self._step]
        self._sample.append(sampled)
        self._sampled += len(sampled)
        while self._sampled > 2 * _SAMPLE:
            joined = np.concatenate(self._sample)[::2]
            self._sample, self._sampled = [joined], len(joined)
            self._step *= 2

    def _histogram(self) -> tuple[int, ...] | None:
        if not self._sampled:
            return None
        sample = np.concatenate(self._sample)
        sample = sample[np.isfinite(sample)]
        if not len(sample):
            return None
        counts, _ = np.histogram(sample, bins=_BINS)
        return tuple(int(count) for count in counts)


def _storage_type(dtype: pa.DataType) -> pa.DataType:
    if isinstance(dtype, pa.ExtensionType):
        return dtype.storage_type
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _is_ordered(dtype: pa.DataType) -> bool:
    types = pa.types
    is_number = types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)
    is_text = types.is_string(dtype) or types.is_large_string(dtype)
    is_time = types.is_temporal(dtype) and not types.is_interval(dtype)
    return bool(is_number or is_text or is_time or types.is_boolean(dtype))


def _numbers(present: pa.Array) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the numbers of a histogram: values, times as integers, lengths of texts and lists."""
    dtype, types = present.type, pa.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        yield present.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    elif types.is_timestamp(dtype) or types.is_date64(dtype) or types.is_duration(dtype):
        yield present.view(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64)
    elif types.is_date32(dtype):
        yield present.view(pa.int32()).to_numpy(zero_copy_only=False).astype(np.float64)
    elif types.is_string(dtype) or types.is_large_string(dtype):
        yield pc.utf8_length(present).to_numpy(zero_copy_only=False).astype(np.float64)
    elif types.is_list(dtype) or types.is_large_list(dtype):
        yield pc.list_value_length(present).to_numpy(zero_copy_only=False).astype(np.float64)
