"""Sort the rows of fragments into new fragments: all rows, or those of one key range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.batches import read_ahead
from lancelake.data.arrays.retype import retype
from lancelake.data.blobs import Find, StoredBlob, locate, with_found_blobs
from lancelake.data.column_file import WriteTask
from lancelake.data.deletion_files import META_TYPE
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.fragment_writer import write_fragments
from lancelake.format.fragment import Fragment, to_bytes
from lancelake.format.row_address import fragment_of, row_addresses
from lancelake.format.schema import Field
from lancelake.maintenance.compact.row_order import ALL, RowOrder, SortRange, named
from lancelake.maintenance.compact.stored_rows import (
    LINEAGE,
    CarriedRows,
    Joinable,
    RowStream,
    Source,
    described_rows,
    row_width,
    spread,
)
from lancelake.maintenance.compact.task import Unit, read_in_turn, staged
from lancelake.scan.request import DEFAULT_BATCH_ROWS, Ordering
from lancelake.scan.stream import sort_batches

_TASK_BYTES = 512 << 20
_SORTED_BYTES = 1 << 20
_LEAST_SORTED = 16
_KEY_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SortFragments:
    """Sorts the rows of a key range of fragments into new fragments.

    A partial range reads the keys of every fragment first, then only its own rows. The sort is
    stable.
    """

    source: Source
    fragments: tuple[Fragment, ...]
    write: WriteTask
    order: RowOrder
    rows_per_file: int
    range: SortRange = ALL
    batch_rows: int | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return their fragments, which have no ids yet."""
        carried = CarriedRows()
        with staged(self.source, self.fragments, self.write) as units:
            found = list(self._written(units, carried))
        if self.source.has_stable_row_ids:
            found = [carried.given_to(fragment) for fragment in found]
        return to_bytes(found)

    def _written(self, units: Sequence[Unit], carried: CarriedRows) -> Iterator[Fragment]:
        keyed = _Counted(read_in_turn(units, self._keyed))
        batches = self._sorted(keyed)
        # Every row has been read before the first one is returned.
        first = next(batches, None)
        if first is None:
            return
        rows = RowStream(read_ahead(self._valued(chain([first], batches), units, carried)))
        for count in spread(keyed.rows, max(1, keyed.rows // max(1, self.rows_per_file))):
            yield from write_fragments(
                self.write,
                pa.RecordBatchReader.from_batches(self.source.columns, rows.next_rows(count)),
            )

    @property
    def _keyed_schema(self) -> pa.Schema:
        """Schema of the sorted rows: columns, lineage, keys, position; numbered."""
        described = self.source.described_schema
        empty = pa.RecordBatch.from_pylist([], schema=described)
        types = [*described.types, *(key.type for key in self.order.keys(empty)), META_TYPE]
        return pa.schema([(str(number), kind) for number, kind in enumerate(types)])

    def _keyed(self, number: int, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Read the rows of a fragment in the range, with their keys and positions."""
        source, fragment = unit
        left_out = None if self.range.is_all else self._left_out(source, fragment)
        schema = self._keyed_schema
        for rows in described_rows(source, fragment, self.batch_rows, left_out):
            place = pa.array(row_addresses(number, rows.offsets))
            columns = [*rows.batch.columns, *self.order.keys(rows.batch), place]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _left_out(self, source: Source, fragment: Fragment) -> BitMap:
        """Find the rows outside the range by reading only the keys."""
        schema = self.order.read_schema(source.schema)
        reader = FragmentReader(source.files, source.manifest_at, fragment, schema)
        found = BitMap()
        first = 0
        for batch in reader.batches(start=0, stop=reader.physical_rows, batch_rows=_KEY_ROWS):
            mask = self.range.holds(self.order.keys(batch), self.order.directions)
            found.update((np.flatnonzero(~mask) + first).astype(np.uint32))
            first += batch.num_rows
        return found

    def _sorted(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self._keyed_schema
        places = len(schema.names) - 1
        keys = schema.names[places - len(self.order.directions) : places]
        order = [*named(self.order.directions, keys), Ordering(column=schema.names[places])]
        width = max(row_width(self.source, fragment) for fragment in self.fragments)
        batch_rows = max(_LEAST_SORTED, min(DEFAULT_BATCH_ROWS, int(_SORTED_BYTES / width)))
        return sort_batches(schema, rows, order, batch_rows=batch_rows)

    def _valued(
        self, rows: Iterable[pa.RecordBatch], units: Sequence[Unit], carried: CarriedRows
    ) -> Iterator[pa.RecordBatch]:
        """Collect the lineage of sorted rows, and yield them with their blobs."""
        count = len(self.source.schema.fields)
        metas = [meta.value for meta in LINEAGE] if self.source.has_stable_row_ids else []
        described = self.source.described_schema
        joinable = Joinable(self.source.schema, self.write.file_version)
        for batch in rows:
            kinds = zip(batch.columns, described.types, strict=False)
            columns = [retype(column, kind) for column, kind in kinds]
            if metas:
                carried.add(pa.RecordBatch.from_arrays(columns[count:], names=metas))
            find = _finder(units, batch.columns[-1])
            for values, _ in with_found_blobs(find, self.source.schema, columns[:count]):
                yield joinable(pa.RecordBatch.from_arrays(values, schema=self.source.columns))


class _Counted:
    """Counts the rows of batches that pass through."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch


def _finder(units: Sequence[Unit], places: pa.UInt64Array) -> Find:
    """Return a function that locates the blobs of rows at these positions."""
    numbers = fragment_of(places.to_numpy())

    def find(field: Field, descriptors: pa.StructArray) -> list[StoredBlob | None]:
        found: list[StoredBlob | None] = [None] * len(numbers)
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            source, fragment = units[number]
            blobs = locate(source.files, fragment, field, descriptors.take(pa.array(rows)))
            for row, blob in zip(rows.tolist(), blobs, strict=True):
                found[row] = blob
        return found

    return find
