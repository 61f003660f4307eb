"""Rows of a MemWAL: the table's columns and a tombstone mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.conform import Conformer
from lancelake.data.schema_check import ensure_fits
from lancelake.format import fragment, ids, logical_types
from lancelake.format.arrow_schema import FIELD_ID, storage_field
from lancelake.format.memwal import wal_keys
from lancelake.format.schema import Encoding, Field, Schema

TOMBSTONE = "_tombstone"
_MARK = pa.field(TOMBSTONE, pa.bool_(), nullable=False)


@dataclass(frozen=True)
class RowShape:
    """Columns of WAL entries and generations of a table, and its key."""

    table: Schema
    data_version: fragment.FileVersion
    keys: tuple[str, ...]

    @staticmethod
    def of(base: Snapshot) -> RowShape:
        """Return the shape for a version; raise for a table that cannot have a MemWAL."""
        schema = base.manifest.schema
        _ensure_columns(schema, base.manifest.data_version)
        keys = schema.primary_key()
        if not keys:
            raise errors.InvalidRequestError("a MemWAL needs a table with a primary key")
        for key in keys:
            kind = storage_field(key).type
            if key not in schema.fields or not wal_keys.is_supported(kind):
                msg = f"column {key.name} of type {key.logical_type} cannot be the key of a MemWAL"
                action = "Use a top-level column of integers, booleans, strings or bytes."
                raise errors.UnsupportedError(msg, column=key.name, action=action)
        names = tuple(key.name for key in keys)
        return RowShape(table=schema, data_version=base.manifest.data_version, keys=names)

    @cached_property
    def arrow(self) -> pa.Schema:
        """Columns of WAL entries: only keys are required, since tombstones have nothing else."""
        fields = [
            _with_id(storage_field(field).with_nullable(field.name not in self.keys), field.id)
            for field in self.table.fields
        ]
        return pa.schema([*fields, _MARK])

    @cached_property
    def stored(self) -> Schema:
        """Columns of generations, with the table's field ids."""
        columns = tuple(
            field if field.name in self.keys else replace(field, nullable=True)
            for field in self.table.fields
        )
        mark = Field(
            name=TOMBSTONE,
            id=ids.FieldId(self.table.max_field_id + 1),
            logical_type="bool",
            nullable=False,
            encoding=Encoding.PLAIN,
        )
        return replace(self.table, fields=(*columns, mark))

    def keys_only(self) -> RowShape:
        """Return the shape of the key columns."""
        return replace(self, table=self.table.select(self.keys))

    def upserts(self, rows: pa.Table | pa.RecordBatch) -> tuple[pa.RecordBatch, ...]:
        """Convert rows of a caller; raise for columns or values that do not fit the table."""
        missing = [name for name in self.table.names if name not in rows.schema.names]
        if missing:
            msg = f"column {missing[0]} is missing: an upsert replaces whole rows"
            raise errors.SchemaMismatchError(msg, path=missing[0])
        return tuple(
            self._marked(batch.columns, is_deleted=False)
            for batch in self._conformed(self.table, rows)
        )

    def tombstones(self, keys: pa.Table | pa.RecordBatch) -> tuple[pa.RecordBatch, ...]:
        """Return the tombstones of keys, given by their columns."""
        wanted = self.table.select(self.keys)
        return tuple(
            self._marked(
                [
                    batch.column(field.name)
                    if field.name in self.keys
                    else pa.nulls(batch.num_rows, field.type)
                    for field in list(self.arrow)[:-1]
                ],
                is_deleted=True,
            )
            for batch in self._conformed(wanted, keys)
        )

    def adopted(self, batch: pa.RecordBatch, stored: Schema | None = None) -> pa.RecordBatch:
        """Return rows of an earlier schema with the columns that the table has now.

        Columns are found by field id, those of entries without ids by name. Columns that were
        added since are null.
        """
        by_id = _columns_by_id(batch, stored)
        arrays = []
        for field in self.table.fields:
            target = self.arrow.field(field.name)
            column = by_id.get(field.id) if by_id else _named(batch, field.name)
            arrays.append(_adopted(column, target, batch.num_rows))
        mark = _named(batch, TOMBSTONE)
        if mark is None:
            mark = pa.repeat(pa.scalar(False), batch.num_rows)
        return pa.RecordBatch.from_arrays([*arrays, mark], schema=self.arrow)

    def key_columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """Return the key columns of rows, in key order."""
        columns = [rows.column(name) for name in self.keys]
        return [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]

    def key_array(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """Return the keys as one array: of the column itself, or of bytes for several columns."""
        columns = self.key_columns(rows)
        if len(columns) == 1:
            return columns[0]
        return wal_keys.for_index(columns).cast(pa.binary())

    def _conformed(
        self, schema: Schema, rows: pa.Table | pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        ensure_fits(schema, rows.schema)
        conformer = Conformer(schema=schema, version=self.data_version)
        batches = rows.combine_chunks().to_batches() if isinstance(rows, pa.Table) else [rows]
        for batch in batches:
            if not batch.num_rows:
                continue
            for name in self.keys:
                if batch.column(name).null_count:
                    raise errors.InvalidRequestError(f"key column {name} has nulls", column=name)
            yield conformer(batch)

    def _marked(self, columns: Sequence[pa.Array], *, is_deleted: bool) -> pa.RecordBatch:
        marks = pa.repeat(pa.scalar(is_deleted), len(columns[0]))
        return pa.RecordBatch.from_arrays([*columns, marks], schema=self.arrow)


def live(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that are not tombstones, without the mark."""
    others = rows.filter(pc.invert(rows.column(TOMBSTONE)))
    return others.drop_columns([TOMBSTONE])


def _ensure_columns(schema: Schema, version: fragment.FileVersion) -> None:
    if version is fragment.FileVersion.LEGACY:
        raise errors.UnsupportedError("a table with legacy data files cannot have a MemWAL")
    if TOMBSTONE in schema.names:
        msg = f"a table with a column named {TOMBSTONE} cannot have a MemWAL"
        raise errors.UnsupportedError(msg, column=TOMBSTONE)
    for field in schema.walk():
        if logical_types.has_blobs(field) or field.is_json:
            kind = "JSON" if field.is_json else "blobs"
            msg = f"column {field.name} has {kind}, which a MemWAL does not support"
            raise errors.UnsupportedError(msg, column=field.name)


def _with_id(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(field_id)})


def _columns_by_id(batch: pa.RecordBatch, stored: Schema | None) -> dict[int, pa.Array]:
    """Return columns by the ids of a stored schema, or by those in the fields' metadata.

    The mark has the id that the next column of the table gets.
    """
    if stored is not None:
        columns = (field for field in stored.fields if field.name != TOMBSTONE)
        return {field.id: batch.column(field.name) for field in columns}
    by_id: dict[int, pa.Array] = {}
    for place, field in enumerate(batch.schema):
        text = (field.metadata or {}).get(FIELD_ID.encode(), b"")
        if text.isdigit():
            by_id[int(text)] = batch.column(place)
    return by_id


def _named(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    return batch.column(name) if name in batch.schema.names else None


def _adopted(column: pa.Array | None, target: pa.Field, rows: int) -> pa.Array:
    if column is None:
        if not target.nullable:
            raise errors.CorruptTableError(f"rows of the MemWAL have no key column {target.name}")
        return pa.nulls(rows, target.type)
    if column.type.equals(target.type):
        return column
    try:
        if pa.types.is_nested(target.type) and column.type.num_fields == target.type.num_fields:
            return column.cast(target.type)
    except (pa.ArrowException, NotImplementedError):
        pass
    msg = (
        f"column {target.name} has type {target.type}, but rows of the MemWAL have {column.type}; "
        "a column's type cannot change while rows are not merged"
    )
    raise errors.UnsupportedError(msg, column=target.name)
