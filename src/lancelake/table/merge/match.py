"""Matching of source rows with rows of the table, by scan or by an index of the key."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import gathered
from lancelake.data.fragment_reader import MetaColumn
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import LanceTableError
from lancelake.expr.condition import Column, Condition, Membership, all_of
from lancelake.expr.literals import type_at
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.logical_types import has_blobs
from lancelake.format.row_address import bitmap_of, fragment_of, offset_of
from lancelake.format.schema import Field
from lancelake.index.order import ordered_points
from lancelake.index.row_sets import U64Array
from lancelake.scan.execute import execute
from lancelake.scan.index_search.search import IndexSearch, rows_with_keys, search
from lancelake.scan.index_search.sources import IndexSources
from lancelake.scan.live_rows import count_rows
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest, expression_schema
from lancelake.scan.task_rows import Mask, ScanColumns, to_mask
from lancelake.table.merge.source import SOURCE_ROW, Comparer, RowNumbers, SourceKeys, key_fields
from lancelake.table.row_steps import divided, writable

if TYPE_CHECKING:
    from pyarrow import acero

# With fewer rows for each key, reading the keys of all rows is as fast as looking each up.
_ROWS_PER_KEY = 100
_UNKNOWN_ROWS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLookup:
    """Keys of a source that are looked up in the indices of key columns."""

    fields: tuple[Field, ...]
    keys: SourceKeys
    found: IndexSearch | None
    """What the indices of a version know; None if they were not asked."""

    @staticmethod
    def of(base: Snapshot, fields: tuple[Field, ...], keys: SourceKeys) -> KeyLookup:
        """Look up keys, unless there are too many."""
        if keys.table.num_rows > most_keys(base):
            return KeyLookup(fields=fields, keys=keys, found=None)
        every = FragmentList.of(base.manifest.fragments).ids
        return KeyLookup(fields=fields, keys=keys, found=_asked(base, fields, keys, every))

    def narrowed(self, scans: Sequence[ScanTask]) -> list[ScanTask]:
        """Return scans of the rows that may have one of the keys, of the same version."""
        return list(scans) if self.found is None else narrowed(scans, self.found)

    def most_rows(self, base: Snapshot) -> int:
        """Return how many rows may have one of the keys, from the metadata of the version."""
        if self.found is None:
            return count_rows(base)
        named = sum(len(known.rows) for known in self.found.found.values())
        others = [
            fragment
            for fragment in base.manifest.fragments
            if fragment.id not in self.found.found and fragment.id not in self.found.empty
        ]
        return named + sum(fragment.physical_rows or _UNKNOWN_ROWS for fragment in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedMatches:
    """Rows with a key of the source, of fragments whose keys need not be read."""

    fragments: BitMap
    source: RowNumbers
    target: U64Array


def indexed_matches(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys
) -> IndexedMatches | None:
    """Return the rows that an index of the key finds together with their keys.

    None where there is no such index, the keys are many, or they have several columns or repeats.
    """
    if len(fields) > 1 or not keys.are_unique or keys.table.num_rows > most_keys(base):
        return None
    column = _column(base, fields[0])
    # An index of floating-point numbers takes both zeros for the same value.
    if column is None or column.dtype != keys.table.column(0).type:
        return None
    complete = keys.complete().combine_chunks()
    if not complete.num_rows:
        return None
    values, numbers = (chunks.chunk(0) for chunks in complete.columns)
    points, order = ordered_points(values)
    with _named(base):
        found = rows_with_keys(base, column, points)
    numbers = np.asarray(numbers)[np.asarray(order)]
    return IndexedMatches(
        fragments=found.fragments, source=numbers[found.points], target=found.addresses
    )


def most_keys(base: Snapshot) -> int:
    """Return how many keys are looked up at most; for more, the keys of all rows are read."""
    return count_rows(base) // _ROWS_PER_KEY if base.indices else 0


def with_keys(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys, scans: Sequence[ScanTask]
) -> list[ScanTask]:
    """Return scans of the rows that may have one of the keys.

    The scans are returned unchanged where no index helps, or where the keys are many.
    """
    if keys.table.num_rows > most_keys(base):
        return list(scans)
    found = _asked(base, fields, keys, [scan.fragment.id for scan in scans])
    return list(scans) if found is None else narrowed(scans, found)


def key_indices(base: Snapshot, on: Sequence[str]) -> list[str]:
    """Return the names of the indices that can be asked for keys, if these are few."""
    schema, sources = expression_schema(base.manifest.schema), IndexSources(base)
    found: dict[str, None] = {}
    for field in key_fields(on, base.manifest.schema):
        dtype = type_at(schema, (field.name,))
        if dtype is not None:
            column = Column(path=(field.name,), dtype=dtype)
            found |= dict.fromkeys(source.index for source in sources.of(column))
    return list(found)


def narrowed(scans: Sequence[ScanTask], found: IndexSearch) -> list[ScanTask]:
    """Return scans of the rows that indices found; fragments without rows are left out."""
    kept = [scan for scan in scans if scan.fragment.id not in found.empty]
    rows = [found.found.get(scan.fragment.id) for scan in kept]
    left = [
        scan if known is None else scan.within(known.rows)
        for scan, known in zip(kept, rows, strict=True)
    ]
    return [scan for scan in left if scan.rows is None or scan.rows]


def _asked(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys, fragments: Sequence[FragmentId]
) -> IndexSearch | None:
    conditions: list[Condition] = []
    for field, values in zip(fields, keys.table.columns, strict=True):
        column = _column(base, field)
        if column is not None:
            conditions.append(Membership(column=column, values=_values(values, column.dtype)))
    if not conditions:
        return None
    with _named(base):
        return search(base, all_of(conditions), fragments)


def _column(base: Snapshot, field: Field) -> Column | None:
    """Return a column whose values indices store as keys are compared; None for others."""
    plain = Comparer.of(field).plain
    column = Column(path=(field.name,), dtype=plain)
    schema = expression_schema(base.manifest.schema)
    return column if type_at(schema, column.path) == plain else None


@contextmanager
def _named(base: Snapshot) -> Iterator[None]:
    """Let errors name the table."""
    try:
        yield
    except LanceTableError as error:
        raise error.at(base.location.uri, base.version) from error.__cause__


def _values(keys: pa.ChunkedArray, plain: pa.DataType) -> pa.Array:
    """Return the values of keys, each once; numbers are compared by their bits."""
    found = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], keys.type)
    return found.drop_null().unique().view(plain)


# Slots per key: about one in this many other keys passes.
_SLOTS_PER_KEY = 16
_LEAST_BITS = 16
_MOST_BITS = 26
# Keys within a range of this many slots have one slot each.
_RANGE_BITS = 25
_FACTOR = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1

Item = TypeVar("Item")
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMarks:
    """Slots occupied by the keys of a source; a key whose slot is free is not among them.

    Consecutive keys occupy consecutive slots, so that a table sorted by key is looked up in memory
    order.
    """

    columns: tuple[int, ...]
    least: int
    bits: int
    taken: Mask

    @staticmethod
    def of(keys: Sequence[pa.ChunkedArray]) -> KeyMarks | None:
        """Insert the keys by their fixed-width columns; None if there is no such column."""
        columns = tuple(i for i, column in enumerate(keys) if _is_plain(column.type))
        if not columns:
            return None
        wanted = max(1, len(keys[0]) * _SLOTS_PER_KEY)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (wanted - 1).bit_length()))
        least, span = _range(keys[columns[0]]) if len(columns) == 1 else (0, 0)
        if span.bit_length() <= _RANGE_BITS:
            bits = max(bits, span.bit_length())
        taken = np.zeros(1 << bits, dtype=np.bool_)
        marks = KeyMarks(columns=columns, least=least, bits=bits, taken=taken)
        for batch in pa.table(keys, names=[str(i) for i in range(len(keys))]).to_batches():
            taken[marks._slots(batch.columns)] = True
        return marks

    def passes(self, keys: Sequence[pa.Array]) -> Mask:
        """Whether each key may be among those of the source."""
        mask: Mask = self.taken[self._slots(keys)]
        return mask

    def _slots(self, keys: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        number = key_numbers(keys[self.columns[0]])
        for place, column in enumerate(self.columns[1:], start=1):
            factor = np.uint64((_FACTOR * place) & _WORD)
            number = number + key_numbers(keys[column]) * factor
        if self.least:
            number = number - np.uint64(self.least & _WORD)
        folded = number >> np.uint64(self.bits)
        folded ^= number
        folded &= np.uint64((1 << self.bits) - 1)
        return folded.view(np.int64)


def _range(keys: pa.ChunkedArray) -> tuple[int, int]:
    """Return the smallest key as a number, and its distance to the greatest."""
    ends = [key_numbers(chunk).view(np.int64) for chunk in keys.drop_null().chunks if len(chunk)]
    if not ends:
        return 0, 0
    least, greatest = min(int(e.min()) for e in ends), max(int(e.max()) for e in ends)
    return least, greatest - least


def _is_plain(dtype: pa.DataType) -> bool:
    return pa.types.is_primitive(dtype) and dtype.bit_width in (8, 16, 32, 64)


def key_numbers(array: pa.Array) -> Numbers:
    """Return the bits of fixed-width values as numbers; the number of a null is arbitrary."""
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1], dtype=f"<i{width}")
    values = data[array.offset : array.offset + len(array)]
    return values.astype(np.int64, copy=False).view(np.uint64)


Addresses = npt.NDArray[np.uint64]

# More keys than this are matched in several passes over the table.
_KEYS_AT_ONCE = 8 << 20
_JOINED_BYTES = 64 << 20
_BATCH_ROWS = 1 << 17
_ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Matching rows: source row numbers and target row addresses, ordered by address."""

    source: RowNumbers
    target: Addresses

    def __len__(self) -> int:
        return len(self.source)

    def where(self, mask: npt.NDArray[np.bool_]) -> Pairs:
        """Return the selected pairs."""
        return Pairs(source=self.source[mask], target=self.target[mask])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchKeys:
    """Look up keys of a source among the rows of some fragments."""

    scans: tuple[ScanTask, ...]
    fields: tuple[Field, ...]
    keys: pa.Table
    """Normalised keys, and the source row of each."""

    are_unique: bool

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return 4 * int(self.keys.nbytes) + (64 << 20)

    def run(self) -> bytes:
        """Return the pairs as an Arrow stream."""
        names = [name for name in self.keys.column_names if name != SOURCE_ROW]
        fields = [pa.field(name, self.keys.schema.field(name).type) for name in names]
        schema = pa.schema([*fields, pa.field(_ADDRESS, pa.uint64())])
        marks = KeyMarks.of([self.keys.column(name) for name in names])
        rows = self._target(schema, marks)
        if marks is not None and self.are_unique and len(names) == 1:
            joined = _looked_up(rows, self.keys)
        else:
            joined = _joined(pa.RecordBatchReader.from_batches(schema, rows), self.keys, names)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, joined.schema) as writer:
            writer.write_table(joined)
        return sink.getvalue()

    def _target(self, schema: pa.Schema, marks: KeyMarks | None) -> Iterator[pa.RecordBatch]:
        """Yield the keys and addresses of rows that may match."""
        columns = ScanColumns.of(self.scans[0].spec)
        comparers = [Comparer.of(field) for field in self.fields]
        # Each batch has a fixed cost, however few rows it has.
        for batch in gathered(read for scan in self.scans for read in execute(scan, columns)):
            keys = [compare(batch.column(i)) for i, compare in enumerate(comparers)]
            address = batch.column(batch.num_columns - 1)
            rows = pa.RecordBatch.from_arrays([*keys, address], schema=schema)
            if marks is not None:
                rows = rows.take(pa.array(np.flatnonzero(marks.passes(keys))))
            yield rows


def match_keys(
    base: Snapshot,
    fields: tuple[Field, ...],
    keys: SourceKeys,
    engine: Engine,
    *,
    use_index: bool = True,
    progress: Progress | None = None,
) -> Pairs:
    """Find the live rows with the key of a source row; keys with a null never match.

    With `use_index`, indices of the key columns are searched first.
    """
    request = ScanRequest(
        columns=tuple(field.name for field in fields),
        with_row_address=True,
        batch_size=_BATCH_ROWS,
        remembers_small=True,
    )
    scans: Sequence[ScanTask] = plan(base, request).tasks
    indexed = indexed_matches(base, fields, keys) if use_index else None
    if indexed is not None:
        scans = [scan for scan in scans if scan.fragment.id not in indexed.fragments]
    if use_index and scans:
        scans = with_keys(base, fields, keys, scans)
    pairs = _read(base, fields, keys, divided(scans, engine.parallelism), engine, progress)
    if indexed is None:
        return pairs
    return _ordered_pairs(
        np.concatenate([indexed.source, pairs.source]),
        np.concatenate([indexed.target, pairs.target]),
    )


def _read(
    base: Snapshot,
    fields: tuple[Field, ...],
    keys: SourceKeys,
    scans: Sequence[ScanTask],
    engine: Engine,
    progress: Progress | None,
) -> Pairs:
    """Find rows by reading the keys of the table."""
    if not scans or not keys.table.num_rows:
        return read_pairs([])
    tasks = [
        MatchKeys(scans=group, fields=fields, keys=part, are_unique=keys.are_unique)
        for part in map(_in_order, keys.parts(_KEYS_AT_ONCE))
        for group in balance_scans(scans, engine.parallelism)
    ]
    job = Job(description=f"match keys of {base.location.uri}", tasks=tasks, progress=progress)
    return read_pairs(engine.run(job))


def _looked_up(rows: Iterator[pa.RecordBatch], keys: pa.Table) -> pa.Table:
    """Look up rows by unique keys of one fixed-width column."""
    ordered, sources = _sorted_keys(keys)
    schema = pa.schema([(_ADDRESS, pa.uint64()), (SOURCE_ROW, pa.int64())])
    matching: list[pa.RecordBatch] = []
    for batch in rows:
        column, addresses = batch.columns
        wanted = key_numbers(column)
        places = np.searchsorted(ordered, wanted)
        places[places == len(ordered)] = 0
        matches = ordered[places] == wanted
        if column.null_count:
            matches &= to_mask(column.is_valid())
        arrays = [addresses.filter(pa.array(matches)), pa.array(sources[places[matches]])]
        matching.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(matching, schema)


def _in_order(keys: pa.Table) -> pa.Table:
    """Sort keys of one integer column, once for all tasks, each of which would have to."""
    if keys.column_names[1:] != [SOURCE_ROW] or not pa.types.is_integer(keys.column(0).type):
        return keys
    _, order = _order(keys)
    return keys if order is None else keys.take(pa.array(order))


def _sorted_keys(keys: pa.Table) -> tuple[Numbers, RowNumbers]:
    """Return sorted keys, and the source row of each."""
    numbers, order = _order(keys)
    sources = keys.column(SOURCE_ROW).to_numpy()
    return (numbers, sources) if order is None else (numbers[order], sources[order])


def _order(keys: pa.Table) -> tuple[Numbers, npt.NDArray[np.intp] | None]:
    """Return keys as numbers, and their order; None if they ascend."""
    numbers = np.concatenate([key_numbers(chunk) for chunk in keys.column(0).chunks])
    return numbers, None if bool((numbers[1:] > numbers[:-1]).all()) else np.argsort(numbers)


def _joined(target: pa.RecordBatchReader, keys: pa.Table, names: Sequence[str]) -> pa.Table:
    """Hash join of the stream of target keys with the source keys, which are the build side."""
    from pyarrow import acero  # noqa: PLC0415  # loads pandas, too

    if hasattr(acero, "RecordBatchReaderSourceNodeOptions"):  # since pyarrow 26
        options = acero.RecordBatchReaderSourceNodeOptions(target)
        return _join(acero.Declaration("record_batch_reader_source", options), keys, names)
    # Each part builds the hash table of the source keys again.
    parts = [pa.Table.from_batches([batch]) for batch in gathered(target, _JOINED_BYTES)]
    return pa.concat_tables(
        _join(acero.Declaration("table_source", acero.TableSourceNodeOptions(part)), keys, names)
        for part in parts or [target.schema.empty_table()]
    )


def _join(target: acero.Declaration, keys: pa.Table, names: Sequence[str]) -> pa.Table:
    from pyarrow import acero  # noqa: PLC0415  # loads pandas, too

    join = acero.Declaration(
        "hashjoin",
        acero.HashJoinNodeOptions(
            "inner",
            left_keys=list(names),
            right_keys=list(names),
            left_output=[_ADDRESS],
            right_output=[SOURCE_ROW],
        ),
        inputs=[
            target,
            acero.Declaration("table_source", acero.TableSourceNodeOptions(keys)),
        ],
    )
    return join.to_table(use_threads=True)


def balance(
    items: Sequence[Item], count: int, size: Callable[[Item], int]
) -> list[tuple[Item, ...]]:
    """Distribute items over groups of about the same size."""
    groups: list[list[Item]] = [[] for _ in range(min(count, len(items)))]
    sizes = [0] * len(groups)
    for item in items:
        smallest = sizes.index(min(sizes))
        groups[smallest].append(item)
        sizes[smallest] += size(item)
    return [tuple(group) for group in groups]


def balance_scans(scans: Sequence[ScanTask], count: int) -> list[tuple[ScanTask, ...]]:
    """Distribute scans over groups of about the same number of rows."""
    return balance(scans, count, lambda scan: scan.most_rows or 0)


def read_pairs(results: Iterable[bytes]) -> Pairs:
    """Return the pairs that runs of `MatchKeys` found."""
    tables = [pa.ipc.open_stream(result).read_all() for result in results]
    if not tables:
        return Pairs(source=np.array([], dtype=np.int64), target=np.array([], dtype=np.uint64))
    table = pa.concat_tables(tables)
    return _ordered_pairs(table.column(SOURCE_ROW).to_numpy(), table.column(_ADDRESS).to_numpy())


def _ordered_pairs(source: RowNumbers, target: Addresses) -> Pairs:
    order = np.argsort(target)
    if len(order) > 1 and bool((np.diff(target[order]) == 0).any()):
        order = np.lexsort((source, target))
    return Pairs(source=source[order], target=target[order])


_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 1 << 8
_ROW_ID = MetaColumn.ROW_ID.value


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRows:
    """Selected columns of a version, optionally with row ids."""

    scans: dict[FragmentId, ScanTask]
    columns: ScanColumns | None
    batch_rows: int

    @staticmethod
    def of(base: Snapshot, columns: tuple[str, ...], *, with_row_id: bool = False) -> TargetRows:
        """Plan to read these columns."""
        request = ScanRequest(columns=columns, with_row_id=with_row_id)
        tasks = plan(base, request).tasks
        names = frozenset(columns)
        fields = [f for f in base.manifest.schema.fields if f.name in names]
        return TargetRows(
            scans={task.fragment.id: task for task in tasks},
            columns=ScanColumns.of(tasks[0].spec) if tasks else None,
            batch_rows=_BLOBS_AT_ONCE if any(map(has_blobs, fields)) else _ROWS_AT_ONCE,
        )

    def at(self, addresses: Addresses) -> pa.RecordBatch:
        """Return the rows at addresses, which may repeat."""
        if bool((addresses[1:] < addresses[:-1]).any()):
            order = np.argsort(addresses, kind="stable")
            return self.at(addresses[order]).take(pa.array(np.argsort(order)))
        fragments = fragment_of(addresses).astype(np.int64)
        parts = [
            self._of_fragment(FragmentId(int(i)), addresses[fragments == i])
            for i in np.unique(fragments)
        ]
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _of_fragment(self, fragment: FragmentId, addresses: Addresses) -> pa.RecordBatch:
        offsets = offset_of(addresses).astype(np.uint32)
        wanted = np.unique(offsets)
        part = replace(self.scans[fragment], start=int(wanted[0]), stop=int(wanted[-1]) + 1)
        part = part.matching(bitmap_of(wanted))
        batches = list(writable(part, execute(part, self.columns)))
        rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        if len(wanted) == len(offsets):
            return rows
        return rows.take(pa.array(np.searchsorted(wanted, offsets)))


def split_row_ids(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """Split rows into rows without ids, and the ids."""
    position = rows.schema.get_field_index(_ROW_ID)
    return rows.remove_column(position), rows.column(position)
