"""The plain data source `lance`, which works in every session, including Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lancelake.memwal.view import Freshness
from lancelake.scan.split import SplitLimits
from lancelake.spark.options.table_options import (
    READ_OPTIONS,
    USE_INDEX,
    WRITE_OPTIONS,
    TableOptions,
    ensure_known,
    open_version,
    parse,
)
from lancelake.spark.reading.change_feed import (
    FEED,
    FEED_OPTIONS,
    FeedPartition,
    FeedRequest,
    feed_partitions,
    versions_of,
)
from lancelake.spark.reading.latest_plan import (
    FRESHNESS,
    LATEST_OPTIONS,
    LatestRequest,
    latest_partitions,
)
from lancelake.spark.reading.partition import (
    ReadPartition,
    TravelingPartition,
    encode,
    read_bytes,
)
from lancelake.spark.reading.read_plan import PlannedRead, ReadRequest
from lancelake.spark.streaming.options import STREAM_OPTIONS, feed_schema
from lancelake.spark.streaming.sink import LanceStreamWriter
from lancelake.spark.streaming.source import UnlimitedReader, VersionReader
from lancelake.spark.types import arrow_schema, shown_schema
from lancelake.spark.worker.on_executors import Portable
from lancelake.spark.writing.plain_writer import LanceWriter

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "lance"
# The plain source does not know the number of cores of the session.
_CORES = 8


class LanceDataSource(DataSource):
    """Reads a version and appends to or overwrites a table; Spark does all filtering."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the version selected by the options."""
        given = _given(self.options)
        known = (*READ_OPTIONS, *STREAM_OPTIONS, *FEED_OPTIONS, FRESHNESS)
        snapshot = open_version(parse(given, known))
        return feed_schema(shown_schema(snapshot.manifest.schema), given)

    def reader(self, schema: StructType) -> LanceReader:
        """Return a reader of the columns of `schema`."""
        return LanceReader(schema, _given(self.options))

    def streamReader(self, schema: StructType) -> VersionReader:
        """Return a streaming reader: all rows first, then the changes."""
        try:
            from lancelake.spark.streaming.limited_source import LimitedReader  # noqa: PLC0415
        except ImportError:  # before Spark 4.2
            return UnlimitedReader(schema, _given(self.options))
        return LimitedReader(schema, _given(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:
        """Return a streaming writer."""
        return LanceStreamWriter(schema, _given(self.options), overwrite=overwrite)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer of rows with this schema."""
        options = parse(_given(self.options), WRITE_OPTIONS)
        return LanceWriter.prepare(schema, options, overwrite=overwrite)


class LanceReader(Portable, DataSourceReader):
    """Reads the partitions of one version, pinned when the read is planned."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._schema = schema
        self._options = dict(options)

    def partitions(self) -> list[InputPartition]:
        """Pin the version and split it."""
        options = parse(self._options, (*READ_OPTIONS, *FEED_OPTIONS, FRESHNESS))
        found: Sequence[TravelingPartition]
        if options.flag(FEED, default=False):
            found = self._changes(options)
        elif options.get(FRESHNESS) is not None:
            found = self._latest(options)
        else:
            found = self._rows(options)
        self._options = {}
        return [InputPartition(encode(part)) for part in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        yield from read_bytes(partition.value)

    def _rows(self, options: TableOptions) -> Sequence[ReadPartition]:
        ensure_known(options.rest, READ_OPTIONS)
        most = options.positive("maxPartitionBytes") or SplitLimits().max_bytes
        request = ReadRequest(
            snapshot=open_version(options),
            schema=self._schema,
            batch_rows=options.positive("batchRows"),
            use_scalar_index=options.flag(USE_INDEX, default=True),
            limits=SplitLimits(max_bytes=most, cores=_CORES),
        )
        return PlannedRead(request).partitions() or [empty_partition(self._schema)]

    def _latest(self, options: TableOptions) -> Sequence[TravelingPartition]:
        ensure_known(options.rest, ("branch", *LATEST_OPTIONS), options.location.uri)
        most = options.positive("maxPartitionBytes") or SplitLimits().max_bytes
        request = LatestRequest(
            snapshot=open_version(options),
            schema=self._schema,
            freshness=Freshness.named(options.get(FRESHNESS) or Freshness.DURABLE),
            batch_rows=options.positive("batchRows"),
            limits=SplitLimits(max_bytes=most, cores=_CORES),
        )
        return latest_partitions(request) or [empty_partition(self._schema)]

    def _changes(self, options: TableOptions) -> Sequence[FeedPartition]:
        request = FeedRequest(
            snapshot=open_version(options),
            versions=versions_of(options),
            schema=self._schema,
            cores=_CORES,
        )
        return feed_partitions(request) or [
            FeedPartition(tasks=(), schema=arrow_schema(self._schema))
        ]


def empty_partition(schema: StructType) -> ReadPartition:
    """Return a partition without rows: Spark requires at least one."""
    return ReadPartition(tasks=(), schema=arrow_schema(schema))


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {key: str(value) for key, value in options.items()}
