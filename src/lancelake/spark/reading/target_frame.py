"""A pinned version as a DataFrame with selected columns and metadata columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.format.column_path import quoted_name
from lancelake.format.ids import FragmentId
from lancelake.scan.split import SplitLimits
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jvm.gateway import Gateway, is_classic, open_gateway
from lancelake.spark.jvm.relation import data_frame
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.fragments_table import (
    FragmentsTable,
    KeyedRowsTable,
    StagedRowsTable,
)
from lancelake.spark.reading.partition import encode, read_bytes
from lancelake.spark.reading.read_plan import PlannedRead, ReadRequest
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.types import spark_schema
from lancelake.spark.worker.on_executors import portable
from lancelake.table.merge.key_index import KeyLookup


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
    found = PlannedRead(request).partitions()
    read = _ReadPartitions([encode(part) for part in found])
    return spark.range(0, len(found), 1, max(1, len(found))).mapInArrow(portable(read), schema)


@dataclass(frozen=True, slots=True)
class _ReadPartitions:
    partitions: list[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_bytes(self.partitions[number])
