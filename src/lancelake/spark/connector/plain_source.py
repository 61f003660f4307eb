"""Data source of sessions without a JVM of their own.

Executors write data files and return the fragments as bytes. Nothing is visible before the commit,
and an abort deletes nothing: a commit whose reply was lost may have succeeded, and cleanup removes
orphan files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lancelake.core.table_place import TablePlace
from lancelake.core.values.tasks import SplitLimits
from lancelake.core.values.versions import AtVersion
from lancelake.core.values.writes import WritePlan
from lancelake.errors import InvalidRequestError
from lancelake.spark.connector.plain_reader import UnlimitedReader, VersionReader
from lancelake.spark.jobs.fitted_rows import PlainRows
from lancelake.spark.jobs.write_plan import (
    SaveMode,
    commit_plan,
    ensure_columns,
    plain_rows,
    plan_write,
    written,
)
from lancelake.spark.streaming.sink import LanceStreamWriter
from lancelake.spark.streaming.stream_source import STREAM_OPTIONS, feed_schema
from lancelake.spark.tasks.change_feed import (
    FEED,
    FEED_OPTIONS,
    FeedPartition,
    FeedRequest,
    versions_of,
)
from lancelake.spark.tasks.latest_plan import (
    FRESHNESS,
    LATEST_OPTIONS,
    LatestRequest,
)
from lancelake.spark.tasks.on_executors import Portable, sealed_fragments, unsealed_fragments
from lancelake.spark.tasks.read_plan import (
    PlannedRead,
    ReadPartition,
    ReadRequest,
    TravelingPartition,
    encode,
    read_bytes,
)
from lancelake.spark.values.options import (
    READ_OPTIONS,
    WRITE_OPTIONS,
    TableOptions,
    as_texts,
    ensure_known,
    parse,
)
from lancelake.spark.values.spark_types import arrow_schema, nullable_schema, shown_schema


@dataclass(frozen=True, slots=True)
class WrittenFragments(WriterCommitMessage):
    """The fragments of one task, as bytes."""

    fragments: bytes


class LanceWriter(Portable, DataSourceArrowWriter):
    """Appends to a table, or overwrites it; creates the table if it does not exist.

    It is sent to every task, so it only keeps the number of the version it changes.
    """

    def __init__(self, plan: WritePlan, rows: PlainRows) -> None:
        self._rows = rows
        self._plan = replace(plan, base=None)
        self._base = None if plan.base is None else (plan.base.location, plan.base.version)

    @staticmethod
    def prepare(schema: StructType, options: TableOptions, *, overwrite: bool) -> LanceWriter:
        """Open the table, and plan the write."""
        ensure_columns(schema, options)
        mode = SaveMode.OVERWRITE if overwrite else SaveMode.APPEND
        rows = plain_rows(options, schema, mode)
        plan = plan_write(options, rows.schema, mode)
        if plan is None:
            raise InvalidRequestError("there is nothing to write")
        return LanceWriter(plan, rows)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        """Write the rows of one task."""
        return WrittenFragments(sealed_fragments(written(self._plan.task, self._rows(iterator))))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the rows of all tasks in one version."""
        payloads = (m.fragments for m in messages if isinstance(m, WrittenFragments))
        fragments = unsealed_fragments(payloads)
        base = None
        if self._base is not None:
            location, version = self._base
            base = TablePlace(location).open(AtVersion(version)).snapshot
        commit_plan(replace(self._plan, base=base), fragments)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing."""


NAME = "lance"
# The plain source does not know the number of cores of the session.
_LIMITS = SplitLimits(cores=8)


class LanceDataSource(DataSource):
    """Reads a version and appends to or overwrites a table; Spark does all filtering."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the version selected by the options.

        All are nullable: a reader may return rows of other versions than this one.
        """
        given = as_texts(self.options)
        allowed = (*READ_OPTIONS, *STREAM_OPTIONS, *FEED_OPTIONS, FRESHNESS)
        snapshot = parse(given, allowed).open().snapshot
        return feed_schema(nullable_schema(shown_schema(snapshot.manifest.schema)), given)

    def reader(self, schema: StructType) -> LanceReader:
        """Return a reader of the columns of `schema`."""
        return LanceReader(schema, as_texts(self.options))

    def streamReader(self, schema: StructType) -> VersionReader:
        """Return a streaming reader: all rows first, then the changes."""
        try:
            from lancelake.spark.connector.limited_reader import LimitedReader  # noqa: PLC0415
        except ImportError:  # before Spark 4.2
            return UnlimitedReader(schema, as_texts(self.options))
        return LimitedReader(schema, as_texts(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:
        """Return a streaming writer."""
        return LanceStreamWriter(schema, as_texts(self.options), overwrite=overwrite)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer of rows with this schema."""
        options = parse(as_texts(self.options), WRITE_OPTIONS)
        return LanceWriter.prepare(schema, options, overwrite=overwrite)


class LanceReader(Portable, DataSourceReader):
    """Reads the partitions of one version, pinned when the read is planned."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._schema = schema
        self._options = dict(options)

    def partitions(self) -> list[InputPartition]:
        """Pin the version and split it."""
        options = parse(self._options, (*READ_OPTIONS, *FEED_OPTIONS, FRESHNESS))
        partitions: Sequence[TravelingPartition]
        if options.flag(FEED, default=False):
            partitions = self._changes(options)
        elif options.get(FRESHNESS) is not None:
            partitions = self._latest(options)
        else:
            partitions = self._rows(options)
        self._options = {}
        return [InputPartition(encode(part)) for part in partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        yield from read_bytes(partition.value)

    def _rows(self, options: TableOptions) -> Sequence[ReadPartition]:
        ensure_known(options.rest, READ_OPTIONS)
        at = options.open().snapshot
        request = ReadRequest.of(at, self._schema, options, _LIMITS)
        return PlannedRead(request).partitions() or [empty_partition(self._schema)]

    def _latest(self, options: TableOptions) -> Sequence[TravelingPartition]:
        ensure_known(options.rest, ("branch", *LATEST_OPTIONS), options.location.uri)
        at = options.open().snapshot
        request = LatestRequest.of(at, self._schema, options, _LIMITS)
        return request.partitions() or [empty_partition(self._schema)]

    def _changes(self, options: TableOptions) -> Sequence[FeedPartition]:
        request = FeedRequest(
            snapshot=options.open().snapshot,
            versions=versions_of(options),
            schema=self._schema,
            cores=_LIMITS.cores,
        )
        return request.partitions() or [FeedPartition(tasks=(), schema=arrow_schema(self._schema))]


def empty_partition(schema: StructType) -> ReadPartition:
    """Return a partition without rows: Spark requires at least one."""
    return ReadPartition(tasks=(), schema=arrow_schema(schema))
