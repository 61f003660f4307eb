"""Z-order curve through several columns, which clusters rows with similar values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_KEY_BITS = 64
_MOST_BITS = 16

Cells = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCurve:
    """Divides each column into cells of about the same number of rows, and interleaves their bits.

    `edges` are, for each column, the values at which cells begin except the first, in ascending
    order. The cells of every column use the same number of bits.
    """

    edges: tuple[pa.Array, ...]

    @staticmethod
    def through(samples: Sequence[pa.Array]) -> ZCurve:
        """Divide columns into cells by sampled values."""
        most = 1 << _bits(len(samples))
        return ZCurve(edges=tuple(_edges(_measured(sample), most) for sample in samples))

    def positions(self, columns: Sequence[pa.Array]) -> pa.UInt64Array:
        """Return the positions of rows on the curve; nulls sort first, NaN last."""
        found = np.zeros(len(columns[0]), dtype=np.uint64)
        count = len(columns)
        bits = _bits(count)
        for number, (column, edges) in enumerate(zip(columns, self.edges, strict=True)):
            cells = (_cells(_measured(column), edges) << np.uint64(bits)) // np.uint64(
                len(edges) + 1
            )
            for bit in range(bits):
                place = np.uint64(bit * count + count - 1 - number)
                found |= ((cells >> np.uint64(bit)) & np.uint64(1)) << place
        return pa.array(found)


def _bits(columns: int) -> int:
    return min(_MOST_BITS, _KEY_BITS // columns)


def _edges(sample: pa.Array, most: int) -> pa.Array:
    """Choose the values at which cells begin."""
    known = sample.drop_null()
    if pa.types.is_floating(known.type):
        known = known.filter(pc.invert(pc.is_nan(known)))
    ordered = pc.unique(pc.take(known, pc.sort_indices(known)))
    if len(ordered) > most:
        places = np.linspace(0, len(ordered) - 1, most).astype(np.int64)
        ordered = ordered.take(pa.array(places))
    return ordered[1:]


def _cells(values: pa.Array, edges: pa.Array) -> Cells:
    places = pc.search_sorted(edges, values, side="right")
    cells: Cells = pc.fill_null(places, 0).to_numpy().astype(np.uint64)
    if pa.types.is_floating(values.type):
        is_nan = pc.fill_null(pc.is_nan(values), False).to_numpy(zero_copy_only=False)
        cells[is_nan] = len(edges)
    return cells


def _measured(values: pa.Array) -> pa.Array:
    """Return values in a type that Arrow can search."""
    if pa.types.is_decimal(values.type):
        return values.cast(pa.float64())
    return values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
