"""Match the keys of a source with the rows of a version."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import acero

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.rebatch import gathered
from lancelake.data.row_meta import MetaColumn
from lancelake.engine.port import Engine, Job, Progress
from lancelake.format.schema import Field
from lancelake.scan.execute import execute
from lancelake.scan.live_rows import to_mask
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.scan_columns import ScanColumns
from lancelake.table.merge.key_index import indexed_matches, with_keys
from lancelake.table.merge.keys import Comparer
from lancelake.table.merge.prefilter import Numbers, Sieve, key_numbers
from lancelake.table.merge.source import RowNumbers
from lancelake.table.merge.source_keys import SOURCE_ROW, SourceKeys
from lancelake.table.row_steps.find import divided

Addresses = npt.NDArray[np.uint64]

# More keys than this are matched in several passes over the table.
_KEYS_AT_ONCE = 8 << 20
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
        sieve = Sieve.of([self.keys.column(name) for name in names])
        rows = self._target(schema, sieve)
        if sieve is not None and self.are_unique and len(names) == 1:
            joined = _looked_up(rows, self.keys)
        else:
            joined = _joined(pa.RecordBatchReader.from_batches(schema, rows), self.keys, names)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, joined.schema) as writer:
            writer.write_table(joined)
        return sink.getvalue()

    def _target(self, schema: pa.Schema, sieve: Sieve | None) -> Iterator[pa.RecordBatch]:
        """Yield the keys and addresses of rows that may match."""
        columns = ScanColumns.of(self.scans[0].spec)
        comparers = [Comparer.of(field) for field in self.fields]
        # Each batch has a fixed cost, however few rows it has.
        for batch in gathered(rows for scan in self.scans for rows in execute(scan, columns)):
            keys = [compare(batch.column(i)) for i, compare in enumerate(comparers)]
            address = batch.column(batch.num_columns - 1)
            found = pa.RecordBatch.from_arrays([*keys, address], schema=schema)
            yield (
                found if sieve is None else found.take(pa.array(np.flatnonzero(sieve.passes(keys))))
            )


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
    known = indexed_matches(base, fields, keys) if use_index else None
    if known is not None:
        scans = [scan for scan in scans if scan.fragment.id not in known.fragments]
    if use_index and scans:
        scans = with_keys(base, fields, keys, scans)
    found = _read(base, fields, keys, divided(scans, engine.parallelism), engine, progress)
    if known is None:
        return found
    return _ordered_pairs(
        np.concatenate([known.source, found.source]), np.concatenate([known.target, found.target])
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
        for group in balanced(scans, engine.parallelism)
    ]
    job = Job(description=f"match keys of {base.location.uri}", tasks=tasks, progress=progress)
    return read_pairs(engine.run(job))


def _looked_up(rows: Iterator[pa.RecordBatch], keys: pa.Table) -> pa.Table:
    """Look up rows by unique keys of one fixed-width column."""
    known, sources = _sorted_keys(keys)
    schema = pa.schema([(_ADDRESS, pa.uint64()), (SOURCE_ROW, pa.int64())])
    found: list[pa.RecordBatch] = []
    for held in rows:
        wanted = key_numbers(held.column(0))
        places = np.searchsorted(known, wanted)
        places[places == len(known)] = 0
        matches = known[places] == wanted
        if held.column(0).null_count:
            matches &= to_mask(held.column(0).is_valid())
        arrays = [held.column(1).filter(pa.array(matches)), pa.array(sources[places[matches]])]
        found.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(found, schema)


def _in_order(keys: pa.Table) -> pa.Table:
    """Sort keys of one integer column, once for all tasks, each of which would have to."""
    if keys.column_names[1:] != [SOURCE_ROW] or not pa.types.is_integer(keys.column(0).type):
        return keys
    _, order = _order(keys)
    return keys if order is None else keys.take(pa.array(order))


def _sorted_keys(keys: pa.Table) -> tuple[Numbers, RowNumbers]:
    """Return sorted keys, and the source row of each."""
    known, order = _order(keys)
    sources = keys.column(SOURCE_ROW).to_numpy()
    return (known, sources) if order is None else (known[order], sources[order])


def _order(keys: pa.Table) -> tuple[Numbers, npt.NDArray[np.intp] | None]:
    """Return keys as numbers, and their order; None if they ascend."""
    known = np.concatenate([key_numbers(chunk) for chunk in keys.column(0).chunks])
    return known, None if bool((known[1:] > known[:-1]).all()) else np.argsort(known)


def _joined(target: pa.RecordBatchReader, keys: pa.Table, names: Sequence[str]) -> pa.Table:
    """Hash join of the stream of target keys with the source keys, which are the build side."""
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
            acero.Declaration(
                "record_batch_reader_source", acero.RecordBatchReaderSourceNodeOptions(target)
            ),
            acero.Declaration("table_source", acero.TableSourceNodeOptions(keys)),
        ],
    )
    return join.to_table(use_threads=True)


def balanced(scans: Sequence[ScanTask], count: int) -> list[tuple[ScanTask, ...]]:
    """Distribute tasks over groups of about the same number of rows."""
    groups: list[list[ScanTask]] = [[] for _ in range(min(count, len(scans)))]
    sizes = [0] * len(groups)
    for scan in scans:
        smallest = sizes.index(min(sizes))
        groups[smallest].append(scan)
        sizes[smallest] += scan.most_rows or 0
    return [tuple(group) for group in groups]


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
