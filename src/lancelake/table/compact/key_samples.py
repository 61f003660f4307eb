"""Sample sort keys, to split an order into ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.data.fragment_reader import FragmentReader
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import Fragment
from lancelake.table.compact.row_order import RowOrder
from lancelake.table.compact.stored_rows import Source
from lancelake.table.compact.z_order import ZCurve

_ROWS = 1 << 16
_FRAGMENTS = 256


def sampled(
    source: Source, fragments: Sequence[Fragment], order: RowOrder, *, along_curve: bool
) -> tuple[RowOrder, list[pa.Array]]:
    """Read the keys of sampled rows, deterministically, and return the order with its curve."""
    values = _values(source, fragments, order)
    if not along_curve:
        return order, values
    curve = ZCurve.through(values)
    return replace(order, curve=curve), [curve.positions(values)]


def _values(source: Source, fragments: Sequence[Fragment], order: RowOrder) -> list[pa.Array]:
    schema = order.read_schema(source.schema)
    chosen = fragments[:: -(-len(fragments) // _FRAGMENTS)]
    total = sum(fragment.physical_rows or 0 for fragment in chosen)
    share = min(1.0, _ROWS / max(1, total))
    stored = pa.schema([storage_field(field) for field in schema.fields])
    parts = [order.values(pa.RecordBatch.from_pylist([], schema=stored))]
    for fragment in chosen:
        reader = FragmentReader(source.files, source.manifest_at, fragment, schema)
        rows = reader.physical_rows
        if rows:
            places = np.linspace(0, rows - 1, max(1, int(rows * share)))
            parts.append(order.values(reader.take(places.astype(np.uint64))))
    return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]
