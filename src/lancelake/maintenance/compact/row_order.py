"""Order of rows in a compaction: sort keys, Z-order, ranges of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.data.arrays.batches import read_ahead, retype, search_sorted
from lancelake.data.blobs import Find, StoredBlob, locate, with_found_blobs
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.data.column_reader import project
from lancelake.data.fragment_reader import META_TYPE, FragmentReader
from lancelake.errors import InvalidRequestError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import Fragment, to_bytes
from lancelake.format.logical_types import has_blobs
from lancelake.format.row_address import fragment_of, row_addresses
from lancelake.format.schema import Field, Schema
from lancelake.maintenance.compact.options import CompactionSettings
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
from lancelake.scan.task_rows import Mask, to_mask

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
    places = search_sorted(edges, values, side="right")
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


Path = tuple[str, ...]

_SIMPLE = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    """Rows sorted by the values at some paths, or along a Z-order curve through these values."""

    paths: tuple[Path, ...]
    directions: tuple[Ordering, ...]
    curve: ZCurve | None = None

    def read_schema(self, schema: Schema) -> Schema:
        """Restrict a table's schema to the columns that the keys are computed from."""
        return project(schema, self.paths)

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the values at the paths, in comparable types."""
        return [_comparable(_at(batch, path)) for path in self.paths]

    def keys(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the sort columns, one for each direction."""
        values = self.values(batch)
        return values if self.curve is None else [self.curve.positions(values)]


def asked_order(schema: Schema, options: CompactionSettings) -> RowOrder:
    """Return the requested order; values may be nested in structs.

    Its curve is not set yet, since that depends on values.
    """
    if options.z_order_by:
        names = options.z_order_by
        directions: tuple[Ordering, ...] = (Ordering(column="curve", nulls_first=True),)
    else:
        names = tuple(ordering.column for ordering in options.sort_by)
        directions = options.sort_by
    return RowOrder(paths=tuple(_path(schema, name) for name in names), directions=directions)


def _path(schema: Schema, column: str) -> Path:
    trail = schema.resolve(column)
    leaf = trail[-1]
    if any(node.logical_type != "struct" for node in trail[:-1]) or not _is_sortable(leaf):
        raise InvalidRequestError(
            f"rows cannot be sorted by column {column} of type {leaf.logical_type}",
            action="Sort by numbers, times, text or binary values.",
            column=column,
        )
    return tuple(node.name for node in trail)


def _is_sortable(field: Field) -> bool:
    if field.children or field.is_json or has_blobs(field):
        return False
    found = storage_field(field).type
    kind = found.value_type if pa.types.is_dictionary(found) else found
    return any(is_kind(kind) for is_kind in _SIMPLE)


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    found = batch.column(path[0])
    for name in path[1:]:
        found = pc.struct_field(found, name)
    return found


def _comparable(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        return _comparable(values.dictionary_decode())
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    if pa.types.is_floating(values.type):
        # Normalises negative zero.
        return pc.add(values, pa.scalar(0.0, values.type))
    if pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    return values


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
    parts = sort_batches(batch.schema, iter([batch]), order, batch_rows=DEFAULT_BATCH_ROWS)
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
