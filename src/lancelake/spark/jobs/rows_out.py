"""Rows that executors fetch and write for a merge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import Schema, Snapshot, by_fragment
from lancelake.core.values.writes import RowsByFragment
from lancelake.data.column_file import WriteTask
from lancelake.errors import InternalError, InvalidRequestError
from lancelake.format.arrow_schema import storage_schema
from lancelake.spark.tasks.columns import conform
from lancelake.spark.values.spark_types import arrow_type, supported_schema
from lancelake.table.merge.match import TargetRows
from lancelake.table.merge.write import KeyColumns, RowBatch, WrittenRows, added_rows, write_rows
from lancelake.table.row_steps import AddedRows, RowChange

ADDRESS = "__lance_address"
ROW_ID = "__lance_row_id"
REMOVES = "__lance_removes"

_MOST_ROWS, _LEAST_ROWS = 1 << 14, 1 << 8
_VALUES_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPart:
    """Result of one partition."""

    written: WrittenRows
    replaced: bytes
    """Addresses of the rows that were written again."""
    removed: bytes
    """Addresses of the rows to delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Results of all partitions."""

    gone: RowsByFragment
    added: AddedRows

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return bool(self.added.fragments or self.gone)

    @property
    def change(self) -> RowChange:
        """The change of the table."""
        return RowChange(gone=self.gone, add=lambda: self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedColumns:
    """Columns that updated rows keep as they are stored, without a way through Spark.

    New rows have the values that Spark computed, or nulls.
    """

    target: TargetRows
    schema: pa.Schema

    @staticmethod
    def of(base: Snapshot, names: Collection[str]) -> CarriedColumns | None:
        """Return columns of a version; None if there are none."""
        fields = tuple(f for f in base.manifest.schema.fields if f.name in names)
        if not fields:
            return None
        target = TargetRows.of(base, tuple(field.name for field in fields))
        return CarriedColumns(target=target, schema=storage_schema(Schema(fields=fields)))

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a batch in parts that fit into memory with the columns."""
        step = rows_at_once(len(self.schema))
        return (batch.slice(start, step) for start in range(0, batch.num_rows, step))

    def added_to(self, rows: pa.RecordBatch, addresses: pa.Array) -> pa.RecordBatch:
        """Add the columns to rows, by the addresses of the rows they replace."""
        if not len(addresses):
            return rows
        computed = set(rows.schema.names)
        if addresses.null_count == len(addresses):
            added = [stored for stored in self.schema if stored.name not in computed]
            columns = [pa.nulls(len(addresses), stored.type) for stored in added]
        else:
            stored_rows = self.target.at(addresses.to_numpy().astype(np.uint64))
            added = [stored_rows.schema.field(name) for name in self.schema.names]
            columns = [stored_rows.column(name) for name in self.schema.names]
        carried = {field.name for field in added}
        others = [field for field in rows.schema if field.name not in carried]
        every = [*(rows.column(field.name) for field in others), *columns]
        return pa.RecordBatch.from_arrays(every, schema=pa.schema([*others, *added]))


def rows_at_once(columns: int) -> int:
    """Return the number of rows whose columns are fetched together."""
    return min(_MOST_ROWS, max(_LEAST_ROWS, _VALUES_AT_ONCE // max(1, columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteParts:
    """Writes updated and new rows; deleted rows are reported by address."""

    task: WriteTask
    key: KeyColumns | None
    keeps_row_ids: bool
    carried: CarriedColumns | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> MergedPart:
        """Write the rows of a partition."""
        changes = _Changes(self)
        written = write_rows(self.task, changes.batches(batches), self.key)
        return MergedPart(
            written=written,
            replaced=_concatenate(changes.replaced).tobytes(),
            removed=_concatenate(changes.removed).tobytes(),
        )


@dataclass(slots=True)
class _Changes:
    """The rows of a partition for the writer, and addresses of rows that leave their place."""

    spec: WriteParts
    replaced: list[np.ndarray] = field(default_factory=list)
    removed: list[np.ndarray] = field(default_factory=list)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        carried = self.spec.carried
        for batch in batches:
            for part in (batch,) if carried is None else carried.parts(batch):
                yield self._batch(part)

    def _batch(self, batch: pa.RecordBatch) -> RowBatch:
        """Record the actions of a batch, and return its rows to write."""
        removes = batch.column(REMOVES)
        stays = batch
        if removes.true_count:
            self.removed.append(_addresses(batch.filter(removes)))
            stays = batch.filter(pa.compute.invert(removes))
        self.replaced.append(_addresses(stays))
        new = stays.column(ADDRESS).null_count
        if 0 < new < stays.num_rows:
            raise InternalError("updated and new rows are in one batch")
        rows = stays.drop_columns([ADDRESS, ROW_ID, REMOVES])
        carried = self.spec.carried
        return RowBatch(
            rows=rows if carried is None else carried.added_to(rows, stays.column(ADDRESS)),
            is_new=bool(new),
            row_ids=stays.column(ROW_ID) if self.spec.keeps_row_ids and not new else None,
        )


def combine(
    parts: Sequence[MergedPart],
    key: KeyColumns | None = None,
    describe: Callable[[int], str] = str,
) -> Parts:
    """Combine the results of partitions; refuse a row that is changed twice.

    To delete a row twice is to delete it. `describe` names the row at an address.
    """
    replaced = _concatenate([np.frombuffer(part.replaced, dtype=np.uint64) for part in parts])
    removed = np.unique(
        _concatenate([np.frombuffer(part.removed, dtype=np.uint64) for part in parts])
    )
    addresses = np.sort(np.concatenate([replaced, removed]))
    repeated = np.unique(addresses[1:][addresses[1:] == addresses[:-1]])
    if len(repeated):
        raise InvalidRequestError(
            "Ambiguous merge: several source rows match the same row of the table "
            f"({describe(int(repeated[0]))}; rows that are matched repeatedly: {len(repeated):,})",
            action="Deduplicate the source by key.",
        )
    written = [part.written for part in parts]
    return Parts(gone=by_fragment(addresses), added=added_rows(written, key, deleted=len(removed)))


def _addresses(batch: pa.RecordBatch) -> np.ndarray:
    addresses: np.ndarray = batch.column(ADDRESS).drop_null().to_numpy().astype(np.uint64)
    return addresses


def _concatenate(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.array([], dtype=np.uint64), *arrays])


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRows:
    """Adds a struct of table columns to rows with the address of a table row."""

    target: TargetRows
    struct: pa.StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with the struct as their last column."""
        for batch in batches:
            step = rows_at_once(self.struct.num_fields)
            for start in range(0, batch.num_rows, step):
                yield self._with_target(batch.slice(start, step))

    def _with_target(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = self.target.at(batch.column(ADDRESS).to_numpy().astype(np.uint64))
        struct = conform(rows.to_struct_array(), self.struct)
        return batch.append_column(pa.field("fetched", self.struct), struct)


def with_columns(
    frame: DataFrame, base: Snapshot, columns: tuple[str, ...], name: str
) -> DataFrame:
    """Return a frame with a struct of the table's columns; rows should be ordered by address."""
    schema = supported_schema(base.manifest.schema)
    struct = t.StructType([schema[column] for column in columns])
    fetch = FetchRows(target=TargetRows.of(base, columns), struct=arrow_type(struct))
    fields = [*frame.schema.fields, t.StructField(name, struct)]
    return frame.mapInArrow(fetch, t.StructType(fields))


def group_by_fragment(frame: DataFrame) -> DataFrame:
    """Return rows ordered by address within partitions, each with its own range of addresses."""
    return frame.repartitionByRange(f.col(ADDRESS)).sortWithinPartitions(ADDRESS)
