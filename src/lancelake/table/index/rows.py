"""Rows that an index is built from: the values of a column with what the index stores of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.stages import Stages
from lancelake.format.ids import FragmentId
from lancelake.index.kind import BuildInput, IdKind, Order, Parameters
from lancelake.index.sort import row_schema, value_sorted
from lancelake.scan.count import physical_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.table.index.request import IndexTarget

# Batches of narrow values are larger: the cost of handing over a batch does not depend on its size.
_NARROW_BITS = 64
_NARROW_ROWS = 1 << 16

RowsRead = Callable[[int], None]
"""Called with the number of rows of each batch that was read."""


def build_input(
    base: Snapshot,
    target: IndexTarget,
    fragments: BitMap,
    stored: IdKind,
    *,
    parameters: Parameters | None = None,
    on_rows: RowsRead | None = None,
    stages: Stages | None = None,
) -> BuildInput:
    """Return the live rows of fragments in the order that the kind of an index asks for."""
    batches: Iterable[pa.RecordBatch] = _Rows(base, target, fragments, stored, on_rows)
    if not fragments:
        batches = ()
    elif target.kind.order is Order.VALUE:
        batches = value_sorted(target.dtype, batches)
    return BuildInput(
        dtype=target.dtype,
        batches=batches,
        parameters=parameters or {},
        num_rows=sum(
            physical_rows(base.files, base.manifest_at, f)
            for f in base.manifest.fragments
            if f.id in fragments
        ),
        stages=stages or Stages(),
    )


class _Rows:
    """Live rows of fragments, which can be read several times; progress counts the first time."""

    def __init__(
        self,
        base: Snapshot,
        target: IndexTarget,
        fragments: BitMap,
        stored: IdKind,
        on_rows: RowsRead | None,
    ) -> None:
        self._read = partial(column_rows, base, target, fragments, stored)
        self._on_rows = on_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        on_rows, self._on_rows = self._on_rows, None
        return self._read(on_rows)


def column_rows(
    base: Snapshot,
    target: IndexTarget,
    fragments: BitMap,
    stored: IdKind,
    on_rows: RowsRead | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of fragments in their order."""
    schema = row_schema(target.dtype)
    is_address = stored is IdKind.ADDRESS
    request = ScanRequest(
        columns=(target.path,),
        with_row_address=is_address,
        with_row_id=not is_address,
        fragment_ids=tuple(FragmentId(i) for i in fragments),
        batch_size=_NARROW_ROWS if _is_narrow(target.dtype) else None,
    )
    with run(plan(base, request)) as reader:
        for batch in reader:
            values = batch.column(0)
            if isinstance(values, pa.ExtensionArray):
                values = values.storage
            yield pa.RecordBatch.from_arrays([values, batch.column(1)], schema=schema)
            if on_rows is not None:
                on_rows(batch.num_rows)


def _is_narrow(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(dtype)) and dtype.bit_width <= _NARROW_BITS
