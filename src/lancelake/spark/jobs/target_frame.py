"""Fragments of a table as a frame."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyroaring import BitMap
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import FragmentId, Snapshot, by_fragment, quoted_name
from lancelake.core.values.reads import KeyLookup, MetaColumn
from lancelake.core.values.tasks import SplitLimits
from lancelake.core.values.writes import RowsByFragment
from lancelake.errors import InvalidExpressionError
from lancelake.spark.jobs.engine import SparkEngine, on_partitions
from lancelake.spark.jvm.gateway import Gateway, is_classic, open_gateway
from lancelake.spark.jvm.proxy import sentence_of
from lancelake.spark.jvm.session_tables import data_frame
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.tasks import columns as metadata_columns
from lancelake.spark.tasks.columns import empty_frame, needed_columns
from lancelake.spark.tasks.on_executors import portable
from lancelake.spark.tasks.read_plan import PlannedRead, ReadRequest, encode, read_bytes
from lancelake.spark.values.spark_types import shown_schema, spark_schema


class FragmentsTable(VersionTable):
    """Fragments of a version, each read by one partition.

    Rows keep the order of their fragment.
    """

    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, ids: tuple[FragmentId, ...]
    ) -> None:
        super().__init__(gateway, snapshot, name)
        self._ids = ids

    def identity(self) -> str:
        """Return what tells these rows from others of the version."""
        checksum = zlib.crc32(repr(self._ids).encode())
        return f"{super().identity()}, {len(self._ids)} whole fragments ({checksum:08x})"

    def _request(self, given: dict[str, str]) -> ReadRequest:
        request = super()._request(given)
        limits = replace(request.limits, whole_fragments=True)
        return replace(request, fragment_ids=self._ids, limits=limits)


class KeyedRowsTable(VersionTable):
    """Rows of a version that may have one of some keys."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str, lookup: KeyLookup) -> None:
        super().__init__(gateway, snapshot, name)
        self._lookup = lookup

    def identity(self) -> str:
        """Return what tells these rows from others of the version."""
        keys = self._lookup.keys.table
        buffers = (b for column in keys for chunk in column.chunks for b in chunk.buffers())
        checksum = 0
        for buffer in buffers:
            checksum = zlib.crc32(buffer or b"", checksum)
        return f"{super().identity()}, rows of {keys.num_rows} keys ({checksum:08x})"

    def _request(self, given: dict[str, str]) -> ReadRequest:
        return replace(super()._request(given), lookup=self._lookup)


class StagedRowsTable(VersionTable):
    """Rows that were written for a version but are not committed."""

    def identity(self) -> str:
        """Return what tells these rows from others of the version."""
        # Never equal to the version's own rows, which a session may have cached.
        paths = [file.path for f in self.snapshot.manifest.fragments for file in f.files]
        return f"{super().identity()}, staged ({zlib.crc32(repr(paths).encode()):08x})"


def target_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str],
    metas: Sequence[str] = (),
    lookup: KeyLookup | None = None,
) -> DataFrame:
    """Return columns of a version; classic sessions get statistics and column pruning.

    With a lookup, rows without any of its keys may be left out.
    """
    kind = VersionTable if lookup is None else partial(KeyedRowsTable, lookup=lookup)
    return _columns(spark, snapshot, columns, metas, kind)


def staged_frame(spark: SparkSession, written: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return columns of rows that were written for a version but are not committed."""
    return _columns(spark, written, columns, (), StagedRowsTable)


def _columns(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str],
    metas: Sequence[str],
    kind: Callable[[Gateway, Snapshot, str], VersionTable],
) -> DataFrame:
    if is_classic(spark):
        gateway = open_gateway(spark)
        table = kind(gateway, snapshot, f"lance.`{snapshot.location.uri}`")
        names = [quoted_name(name) for name in columns]
        return data_frame(gateway, table).select(*[f.col(name) for name in [*names, *metas]])
    limits = SplitLimits(cores=SparkEngine(spark).parallelism)
    return _through_tasks(spark, snapshot, columns, metas, limits)


def fragments_frame(
    spark: SparkSession, snapshot: Snapshot, ids: Sequence[FragmentId], columns: Sequence[str]
) -> DataFrame:
    """Return fragments with row addresses; each is read by one partition.

    At least the named columns are included, and at most those of the table.
    """
    address = MetaColumn.ROW_ADDRESS.value
    if is_classic(spark):
        gateway = open_gateway(spark)
        name = f"lance.`{snapshot.location.uri}`"
        frame = data_frame(gateway, FragmentsTable(gateway, snapshot, name, tuple(ids)))
        return frame.select("*", address)
    limits = SplitLimits(cores=SparkEngine(spark).parallelism, whole_fragments=True)
    return _through_tasks(spark, snapshot, columns, (address,), limits, tuple(ids))


def _through_tasks(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str],
    metas: Sequence[str],
    limits: SplitLimits,
    ids: tuple[FragmentId, ...] | None = None,
) -> DataFrame:
    own = spark_schema(snapshot.manifest.schema)
    added = {field.name: field for field in metadata_columns.fields()}
    schema = t.StructType([*(own[name] for name in columns), *(added[name] for name in metas)])
    request = ReadRequest(snapshot=snapshot, schema=schema, limits=limits, fragment_ids=ids)
    partitions = PlannedRead(request).partitions()
    read = _ReadPartitions([encode(part) for part in partitions])
    return spark.range(0, len(partitions), 1, max(1, len(partitions))).mapInArrow(
        portable(read), schema
    )


@dataclass(frozen=True, slots=True)
class _ReadPartitions:
    partitions: list[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_bytes(self.partitions[number])


_ADDRESS = MetaColumn.ROW_ADDRESS.value


def rows_where(spark: SparkSession, at: Snapshot, condition: str) -> RowsByFragment:
    """Return the rows of a version that match a condition."""

    def build(columns: Sequence[str]) -> DataFrame:
        return target_frame(spark, at, columns, [_ADDRESS]).where(f.expr(condition))

    return rows_of(_build_condition(spark, at, condition, build), at)


def rows_of(frame: DataFrame, at: Snapshot) -> RowsByFragment:
    """Return the rows of a version that a frame contains, by their addresses."""
    frame = frame.select(_ADDRESS)
    bitmaps: RowsByFragment = {}
    description = f"find rows of {at.location.uri}"
    for part in on_partitions(frame, CollectRows(), description=description):
        for fragment, rows in part.items():
            bitmaps[fragment] = bitmaps.get(fragment, BitMap()) | BitMap.deserialize(rows)
    return bitmaps


def fragments_where(spark: SparkSession, at: Snapshot, condition: str) -> frozenset[FragmentId]:
    """Return the fragments with a row that matches a condition."""
    fragment = metadata_columns.FRAGMENT_ID

    def build(columns: Sequence[str]) -> DataFrame:
        return target_frame(spark, at, columns, [fragment]).where(f.expr(condition))

    rows = _build_condition(spark, at, condition, build).select(fragment).distinct().collect()
    return frozenset(FragmentId(row[0]) for row in rows)


def has_rows_without(spark: SparkSession, written: Snapshot, condition: str) -> bool:
    """Whether uncommitted rows include some that do not match a condition."""

    def rows(columns: Sequence[str]) -> DataFrame:
        return others(staged_frame(spark, written, columns), f.expr(condition))

    return not _build_condition(spark, written, condition, rows).select(f.lit(1)).isEmpty()


def others(frame: DataFrame, condition: Column) -> DataFrame:
    """Return the rows that do not match a condition."""
    # A null condition is not a match.
    return frame.where(~f.coalesce(condition, f.lit(False)))


@dataclass(frozen=True, slots=True)
class CollectRows:
    """Collects the row addresses of a partition as one bitmap per fragment."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> dict[FragmentId, bytes]:
        """Return the row offsets by fragment, as portable bitmaps."""
        bitmaps: RowsByFragment = {}
        for batch in batches:
            addresses = batch.column(0).to_numpy().astype(np.uint64)
            for fragment, rows in by_fragment(addresses).items():
                bitmaps[fragment] = bitmaps.get(fragment, BitMap()) | rows
        return {fragment: bytes(rows.serialize()) for fragment, rows in bitmaps.items()}


def _build_condition(
    spark: SparkSession,
    at: Snapshot,
    condition: str,
    build: Callable[[Sequence[str]], DataFrame],
) -> DataFrame:
    """Build a frame with the columns of a condition; Spark reports unknown columns."""
    shown = shown_schema(at.manifest.schema)

    def empty(columns: Sequence[str]) -> DataFrame:
        return empty_frame(spark, [shown[name] for name in columns]).where(f.expr(condition))

    every = shown.fieldNames()
    try:
        # Classic sessions prune columns themselves.
        return build(every if is_classic(spark) else needed_columns(empty, every))
    except (AnalysisException, ParseException) as error:
        raise InvalidExpressionError(
            f"the condition {condition!r} cannot be parsed: {sentence_of(error)}",
            table=at.location.uri,
            version=at.version,
        ) from error
