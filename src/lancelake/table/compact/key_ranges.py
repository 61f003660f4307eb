"""Split a sort order into key ranges with about the same number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.scan.live_rows import Mask, to_mask
from lancelake.scan.order import sorted_batches
from lancelake.scan.request import DEFAULT_BATCH_ROWS, Ordering

Bound = tuple[pa.Scalar, ...]
"""The sort keys of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortRange:
    """The rows from a lower bound (inclusive) to an upper bound (exclusive); None is unbounded."""

    lower: Bound | None = None
    upper: Bound | None = None

    @property
    def is_all(self) -> bool:
        """Whether it contains every row."""
        return self.lower is None and self.upper is None

    def holds(self, keys: Sequence[pa.Array], directions: Sequence[Ordering]) -> Mask:
        """Return a mask of the rows it contains."""
        found = np.ones(len(keys[0]), dtype=np.bool_)
        if self.upper is not None:
            found &= _is_before(keys, self.upper, directions)
        if self.lower is not None:
            found &= ~_is_before(keys, self.lower, directions)
        return found


ALL = SortRange()


def ranges(
    keys: Sequence[pa.Array], directions: Sequence[Ordering], count: int
) -> tuple[SortRange, ...]:
    """Split an order into at most `count` ranges, from the keys of sampled rows."""
    rows = len(keys[0])
    if count <= 1 or not rows:
        return (ALL,)
    ordered = _sorted(keys, directions)
    bounds: list[Bound] = []
    for row in range(rows // count, rows, max(1, -(-rows // count))):
        bound = tuple(column[row] for column in ordered)
        if not bounds or bounds[-1] != bound:
            bounds.append(bound)
    edges = [None, *bounds, None]
    return tuple(SortRange(lower=low, upper=high) for low, high in pairwise(edges))


def _sorted(keys: Sequence[pa.Array], directions: Sequence[Ordering]) -> list[pa.Array]:
    names = [str(number) for number in range(len(keys))]
    batch = pa.RecordBatch.from_arrays(list(keys), names=names)
    order = named(directions, names)
    parts = sorted_batches(batch.schema, iter([batch]), order, batch_rows=DEFAULT_BATCH_ROWS)
    return [pa.concat_arrays(columns) for columns in zip(*(p.columns for p in parts), strict=True)]


def named(directions: Sequence[Ordering], names: Sequence[str]) -> list[Ordering]:
    """Return the sort directions for columns with these names."""
    return [
        Ordering(column=name, ascending=d.ascending, nulls_first=d.nulls_first)
        for name, d in zip(names, directions, strict=True)
    ]


def _is_before(keys: Sequence[pa.Array], bound: Bound, directions: Sequence[Ordering]) -> Mask:
    """Return a mask of the rows before a bound, by the first key that differs."""
    before = np.zeros(len(keys[0]), dtype=np.bool_)
    same = ~before
    for values, value, direction in zip(keys, bound, directions, strict=True):
        before |= same & _precedes(values, value, direction)
        same &= _is_same(values, value)
    return before


def _is_same(values: pa.Array, value: pa.Scalar) -> Mask:
    if not value.is_valid:
        return to_mask(values.is_null())
    if _is_nan(value):
        return to_mask(pc.is_nan(values))
    return to_mask(pc.equal(values, value))


def _precedes(values: pa.Array, value: pa.Scalar, direction: Ordering) -> Mask:
    """Return a mask of values before another value; NaN is greater than all numbers."""
    is_null = to_mask(values.is_null())
    if not value.is_valid:
        return is_null & False if direction.nulls_first else ~is_null
    is_nan = _nans(values)
    if _is_nan(value):
        found = ~is_nan & direction.ascending
    elif direction.ascending:
        found = to_mask(pc.less(values, value))
    else:
        found = to_mask(pc.greater(values, value)) | is_nan
    return found | is_null if direction.nulls_first else found & ~is_null


def _nans(values: pa.Array) -> Mask:
    if pa.types.is_floating(values.type):
        return to_mask(pc.is_nan(values))
    return np.zeros(len(values), dtype=np.bool_)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.as_py() != value.as_py())
