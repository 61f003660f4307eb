"""Write the rows of a merge on an executor, and report the results to the driver."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.write_task import WriteTask
from lancelake.errors import InternalError, InvalidRequestError
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.format.ids import FieldId
from lancelake.format.row_address import by_fragment
from lancelake.format.schema import Field, Schema
from lancelake.spark.writing.frame_writer import written
from lancelake.table.merge.keys import Comparer
from lancelake.table.merge.target import TargetRows
from lancelake.table.row_steps.files import with_row_ids
from lancelake.table.row_steps.find import FoundRows
from lancelake.txn.inserted_keys import InsertedKeys, collected, united

ADDRESS = "__lance_address"
ROW_ID = "__lance_row_id"
REMOVES = "__lance_removes"

_MOST_ROWS, _LEAST_ROWS = 1 << 14, 1 << 8
_VALUES_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumns:
    """The key columns of new rows, in the storage types of the table."""

    names: tuple[str, ...]
    ids: tuple[FieldId, ...]
    types: tuple[pa.DataType, ...]

    @staticmethod
    def of(fields: Sequence[Field]) -> KeyColumns:
        """Create the key from columns of a table."""
        return KeyColumns(
            names=tuple(field.name for field in fields),
            ids=tuple(field.id for field in fields),
            types=tuple(Comparer.of(field).plain for field in fields),
        )

    def values(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the keys of rows as recorded by all writers of the table."""
        pairs = zip(self.names, self.types, strict=True)
        return [rows.column(name).cast(dtype) for name, dtype in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPart:
    """Result of one partition."""

    fragments: bytes
    addresses: bytes
    inserted: int
    updated: int
    deleted: int
    keys: InsertedKeys | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Results of all partitions."""

    fragments: tuple[Fragment, ...]
    gone: FoundRows
    inserted: int
    updated: int
    deleted: int
    keys: InsertedKeys | None

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return bool(self.fragments or self.gone)


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
            found = rows_at(self.target, addresses.to_numpy().astype(np.uint64))
            added = [found.schema.field(name) for name in self.schema.names]
            columns = [found.column(name) for name in self.schema.names]
        carried = {field.name for field in added}
        kept = [field for field in rows.schema if field.name not in carried]
        every = [*(rows.column(field.name) for field in kept), *columns]
        return pa.RecordBatch.from_arrays(every, schema=pa.schema([*kept, *added]))


def rows_at_once(columns: int) -> int:
    """Return the number of rows whose columns are fetched together."""
    return min(_MOST_ROWS, max(_LEAST_ROWS, _VALUES_AT_ONCE // max(1, columns)))


def rows_at(target: TargetRows, addresses: np.ndarray) -> pa.RecordBatch:
    """Return the rows at addresses, in any order."""
    order = np.argsort(addresses, kind="stable")
    return target.at(addresses[order]).take(pa.array(np.argsort(order)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteParts:
    """Writes updated and new rows; deleted rows are reported by address."""

    task: WriteTask
    key: KeyColumns | None
    keeps_row_ids: bool
    carried: CarriedColumns | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> MergedPart:
        """Write the rows of a partition."""
        return _Tally(self).written(batches)


@dataclass(slots=True)
class _Tally:
    """Counts the rows passed to the writer."""

    spec: WriteParts
    addresses: list[np.ndarray] = field(default_factory=list)
    row_ids: list[pa.Array] = field(default_factory=list)
    keys: list[InsertedKeys] = field(default_factory=list)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def written(self, batches: Iterator[pa.RecordBatch]) -> MergedPart:
        fragments = written(self.spec.task, self._rows(batches))
        if self.spec.keeps_row_ids and self.row_ids:
            fragments = with_row_ids(fragments, self.row_ids)
        nothing = np.array([], dtype=np.uint64)
        return MergedPart(
            fragments=to_bytes(fragments),
            addresses=np.concatenate([nothing, *self.addresses]).tobytes(),
            inserted=self.inserted,
            updated=self.updated,
            deleted=self.deleted,
            keys=united(self.keys) if self.keys else None,
        )

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        carried = self.spec.carried
        for batch in batches:
            for part in (batch,) if carried is None else carried.parts(batch):
                rows = self._taken(part)
                if rows.num_rows:
                    yield rows

    def _taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record the actions of a batch, and return its rows to write."""
        address = batch.column(ADDRESS)
        self.addresses.append(address.drop_null().to_numpy().astype(np.uint64))
        removes = batch.column(REMOVES)
        self.deleted += removes.true_count
        kept = batch.filter(pa.compute.invert(removes)) if removes.true_count else batch
        new = kept.column(ADDRESS).null_count
        self.inserted += new
        self.updated += kept.num_rows - new
        if 0 < new < kept.num_rows:
            raise InternalError("updated and new rows are in one batch")
        if self.spec.keeps_row_ids and not new:
            self.row_ids.append(kept.column(ROW_ID))
        if self.spec.key is not None and new:
            values = self.spec.key.values(kept)
            self.keys.append(collected(self.spec.key.ids, [values]))
        rows = kept.drop_columns([ADDRESS, ROW_ID, REMOVES])
        carried = self.spec.carried
        return rows if carried is None else carried.added_to(rows, kept.column(ADDRESS))


def together(parts: Sequence[MergedPart]) -> Parts:
    """Combine the results of partitions; refuse a row that two of them change."""
    every = [np.frombuffer(part.addresses, dtype=np.uint64) for part in parts]
    addresses = np.sort(np.concatenate([np.array([], dtype=np.uint64), *every]))
    repeated = addresses[1:][addresses[1:] == addresses[:-1]]
    if len(repeated):
        raise InvalidRequestError(
            "Ambiguous merge: several source rows match the same row of the table (address "
            f"{int(repeated[0])}; {len(repeated)} such rows)",
            action="Deduplicate the source by key.",
        )
    keys = [part.keys for part in parts if part.keys is not None]
    return Parts(
        fragments=tuple(f for part in parts for f in from_bytes(part.fragments)),
        gone=by_fragment(addresses),
        inserted=sum(part.inserted for part in parts),
        updated=sum(part.updated for part in parts),
        deleted=sum(part.deleted for part in parts),
        keys=united(keys) if keys else None,
    )
