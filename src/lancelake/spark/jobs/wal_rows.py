"""Upserts through the MemWAL: rows routed to regions, one WAL entry per batch and region.

Spark computes the bucket of a row as the table format does, so that all rows of a bucket are in one
task. Of several attempts of a task one writes the entry, and all succeed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.commit.snapshot import open_snapshot
from lancelake.core.values.metadata import Field, Location, Snapshot, default_session, quoted_name
from lancelake.core.values.versions import AtVersion
from lancelake.core.values.wal import (
    Bucketed,
    ByValue,
    RegionSpec,
    RowShape,
    Unit,
    Unsharded,
    wal_keys,
)
from lancelake.core.values.writes import OnceOnly
from lancelake.errors import (
    InternalError,
    InvalidRequestError,
    SchemaMismatchError,
    UnsupportedError,
    suggestion,
)
from lancelake.memwal.generations import last_of_each_key
from lancelake.memwal.region import details_of
from lancelake.memwal.table_writer import Region, routed, write_once
from lancelake.spark.jobs.engine import on_partitions
from lancelake.spark.jobs.fitted_rows import fitted
from lancelake.spark.tasks.columns import empty_frame, needed_columns
from lancelake.spark.values.options import TableOptions

UPSERT_OPTIONS = ("mode", "deleteWhen", "sequenceBy")
_UPSERT = "upsert"
_BUCKET = "_lancelake_bucket"
_DELETED = "_lancelake_deleted"
_SEQUENCE = "_lancelake_sequence"
_EXTRA = (_BUCKET, _DELETED, _SEQUENCE)
# Spark hashes this number to 0, the seed of the table format's hash.
_SEED_ZERO = -1693959553
_POSITIVE = 0x7FFFFFFF
_SAME_HASH = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "int64",
    "string",
    "large_string",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """How rows become changes: `delete_when` selects keys to delete, in Spark SQL.

    Of several rows of a key the one with the greatest `sequence_by` wins; without it, any of them.
    """

    delete_when: str | None = None
    sequence_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertCounts:
    """Rows that a task wrote, and regions that had its batch already."""

    rows: int = 0
    entries: int = 0
    entries_before: int = 0


def upsert_of(options: TableOptions) -> Upsert | None:
    """Return the upsert that options ask for; None for any other write."""
    mode = options.get("mode")
    upsert = Upsert(delete_when=options.get("deleteWhen"), sequence_by=options.get("sequenceBy"))
    if mode is None:
        if upsert != Upsert():
            name = "deleteWhen" if upsert.delete_when is not None else "sequenceBy"
            raise InvalidRequestError(
                f"option {name} needs the option mode=upsert", table=options.location.uri
            )
        return None
    if mode.lower() != _UPSERT:
        raise InvalidRequestError(
            f"unknown mode {mode!r}",
            table=options.location.uri,
            action=suggestion(mode, (_UPSERT,), "values of the option mode"),
        )
    return upsert


def upsert_frame(
    frame: DataFrame, base: Snapshot, unit: Unit, upsert: Upsert | None = None
) -> UpsertCounts:
    """Write the rows of a frame to the regions of a table, each region exactly once per unit."""
    spec = table_spec(base)
    rows = _changes(frame, base, upsert or Upsert())
    task = UpsertRows(
        location=base.location, main=base.main_location, version=base.version, unit=unit
    )
    routed_rows = _partitioned(rows, base, spec)
    done = on_partitions(routed_rows, task, description=f"upsert rows into {base.location.uri}")
    return _sum(done)


def once_unit(app_id: str | None, version: int | None) -> Unit:
    """Return the identity of a write: a given one, or a new one that only its tasks share."""
    once = OnceOnly.of(app_id, version)
    if once is None:
        return Unit(query=str(default_session().ids.uuid4()), batch=0)
    return Unit(query=once.app_id, batch=once.version)


def table_spec(base: Snapshot) -> RegionSpec:
    """Return the region spec of a table; raise if writers must choose regions themselves."""
    spec = details_of(base).spec()
    if spec is None:
        raise InvalidRequestError(
            "the MemWAL has no region spec, so that Spark cannot choose the regions of rows",
            table=base.location.uri,
            version=base.version,
        )
    return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertRows:
    """Writes the rows of a partition, which has all rows of its regions."""

    location: Location
    main: Location
    version: int
    unit: Unit

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> UpsertCounts:
        """Write one WAL entry for each region."""
        every = [batch for batch in batches if batch.num_rows]
        if not every:
            return UpsertCounts()
        base = open_snapshot(self.location, AtVersion(self.version), main=self.main)
        return upsert_rows(base, pa.Table.from_batches(every), self.unit)


def upsert_rows(base: Snapshot, rows: pa.Table, unit: Unit) -> UpsertCounts:
    """Write rows that are in this process, with the columns for deletes and order."""
    shape, spec = RowShape.of(base), table_spec(base)
    newest = _newest(rows, shape.keys)
    _ensure_routed(newest, shape, spec)
    plain = newest.select([n for n in newest.column_names if n not in _EXTRA])
    if _DELETED in newest.column_names:
        gone = newest.column(_DELETED)
        kept = shape.upserts(plain.filter(pc.invert(gone)))
        changes = (*kept, *shape.tombstones(plain.filter(gone).select(list(shape.keys))))
    else:
        changes = shape.upserts(plain)
    parts_by_region: dict[uuid.UUID, tuple[Region, list[pa.RecordBatch]]] = {}
    for batch in changes:
        for region, part in routed(spec, shape, batch):
            parts_by_region.setdefault(region.id, (region, []))[1].append(part)
    counts = [_written(base, region, parts, unit) for region, parts in parts_by_region.values()]
    return _sum(counts)


def _written(
    base: Snapshot, region: Region, parts: Sequence[pa.RecordBatch], unit: Unit
) -> UpsertCounts:
    if not write_once(base, region.new_manifest(), parts, unit):
        return UpsertCounts(entries_before=1)
    return UpsertCounts(rows=sum(part.num_rows for part in parts), entries=1)


def _sum(counts: Iterable[UpsertCounts]) -> UpsertCounts:
    every = list(counts)
    return UpsertCounts(
        rows=sum(c.rows for c in every),
        entries=sum(c.entries for c in every),
        entries_before=sum(c.entries_before for c in every),
    )


def _newest(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the sequence if there is one."""
    if _SEQUENCE in rows.column_names:
        order = pc.sort_indices(
            rows, sort_keys=[(_SEQUENCE, "ascending")], null_placement="at_start"
        )
        rows = rows.take(order)
    return last_of_each_key(rows, keys)


def _ensure_routed(rows: pa.Table, shape: RowShape, spec: RegionSpec) -> None:
    """Raise if Spark's bucket of a row is not that of the table format."""
    if _BUCKET not in rows.column_names or not isinstance(spec, Bucketed):
        return
    field = _field(shape.table.fields, spec.column)
    stored = shape.arrow.field(field.name).type
    values = rows.column(field.name).combine_chunks().cast(stored)
    own = wal_keys.buckets(values, spec.buckets)
    if not np.array_equal(own, rows.column(_BUCKET).to_numpy()):
        raise InternalError(f"Spark computed other buckets of column {field.name} than the table")


def _partitioned(rows: DataFrame, base: Snapshot, spec: RegionSpec) -> DataFrame:
    """Return rows in partitions such that no region has rows in two of them."""
    fields = base.manifest.schema.fields
    match spec:
        case Unsharded():
            return rows.repartition(1)
        case ByValue():
            return rows.repartition(f.col(quoted_name(_field(fields, spec.column).name)))
        case Bucketed():
            bucket = bucket_column(_field(fields, spec.column), spec.buckets)
            numbered = rows.withColumn(_BUCKET, bucket)
            return numbered.repartitionById(spec.buckets, f.col(_BUCKET))
        case _:
            assert_never(spec)


def bucket_column(field: Field, buckets: int) -> Column:
    """Return the expression of the bucket of a row by a column."""
    if field.logical_type not in _SAME_HASH:
        raise UnsupportedError(
            f"Spark cannot compute the regions of column {field.name} of type {field.logical_type}",
            column=field.name,
        )
    value = f.hash(f.lit(_SEED_ZERO), f.col(quoted_name(field.name)))
    return f.pmod(value.bitwiseAND(_POSITIVE), f.lit(buckets)).cast("int")


def _field(fields: Sequence[Field], number: int) -> Field:
    match = next((each for each in fields if each.id == number), None)
    if match is None:
        raise SchemaMismatchError(f"the region spec refers to field {number}, which does not exist")
    return match


def _changes(frame: DataFrame, base: Snapshot, upsert: Upsert) -> DataFrame:
    """Return the rows in the table's types, and which are deletes and in which order."""
    marked = frame
    if upsert.delete_when is not None:
        marked = marked.withColumn(
            _DELETED, f.coalesce(f.expr(upsert.delete_when).cast("boolean"), f.lit(False))
        )
    if upsert.sequence_by is not None:
        marked = marked.withColumn(_SEQUENCE, f.expr(upsert.sequence_by))
    own = {name.lower() for name in base.manifest.schema.names}
    others = [name for name in frame.columns if name.lower() not in own]
    texts = [text for text in (upsert.delete_when, upsert.sequence_by) if text is not None]
    used = _used(frame, others, texts)
    for name in others:
        if name not in used:
            raise SchemaMismatchError(
                f"the table has no column {name}",
                table=base.location.uri,
                version=base.version,
                action=suggestion(name, base.manifest.schema.names, "columns"),
            )
    rows = fitted(marked.drop(*(f.col(quoted_name(name)) for name in others)), base)
    missing = [name for name in base.manifest.schema.names if name not in rows.columns]
    if missing:
        raise SchemaMismatchError(
            f"column {missing[0]} is missing: an upsert replaces whole rows",
            table=base.location.uri,
            version=base.version,
        )
    ordered = [*base.manifest.schema.names, *(n for n in rows.columns if n in _EXTRA)]
    return rows.select(*(f.col(quoted_name(name)) for name in ordered))


def _used(frame: DataFrame, names: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Return those of the named columns that expressions use, and all others."""
    if not names or not texts:
        return ()
    fields = {field.name: field for field in frame.schema.fields}

    def build(columns: Sequence[str]) -> DataFrame:
        empty = empty_frame(frame.sparkSession, [fields[name] for name in columns])
        return empty.select(*map(f.expr, texts))

    others = [name for name in frame.columns if name not in names]
    return needed_columns(build, frame.columns, always=others)
