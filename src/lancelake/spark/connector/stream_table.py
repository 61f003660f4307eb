"""Streams out of a table, as Spark's micro-batches ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError
from lancelake.spark.jvm.gateway import Gateway, cores, driver_object
from lancelake.spark.jvm.proxy import Proxy, ScanProxy, TableProxy, implements
from lancelake.spark.jvm.python_tasks import input_partitions, java_schema, reader_factory
from lancelake.spark.streaming.identity import Offset
from lancelake.spark.streaming.stream_source import (
    STREAM_ONLY,
    STREAM_OPTIONS,
    Allowance,
    TableStream,
    feed_schema,
    pack_parts,
)
from lancelake.spark.tasks.change_feed import FEED
from lancelake.spark.tasks.read_plan import encode, read_partition
from lancelake.spark.values.options import TableOptions, add_zones
from lancelake.spark.values.spark_types import nullable_schema, shown_schema

_UNLIMITED = (1 << 31) - 1
_LIMITS = "read.streaming.ReadLimit"
_OF_STREAMS = (*STREAM_ONLY, "startingVersion", "startingTimestamp", FEED)


@implements("catalog.SupportsRead")
class StreamTable(TableProxy):
    """A table as a stream reads it: columns that older versions may lack are nullable."""

    def __init__(self, gateway: Gateway, options: TableOptions, name: str) -> None:
        super().__init__(gateway)
        self._options, self._name = options, name
        own = nullable_schema(shown_schema(options.open().snapshot.manifest.schema))
        self._schema = feed_schema(own, options.rest)

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def capabilities(self) -> Any:
        return self.gateway.enum_set("catalog.TableCapability", ["BATCH_READ", "MICRO_BATCH_READ"])

    def newScanBuilder(self, options: Any) -> Any:  # noqa: ARG002  # they were given by the load
        return _ScanBuilder(self.gateway, TableStream.of(self._schema, self._options), self._schema)


@implements("read.ScanBuilder")
class _ScanBuilder(Proxy):
    def __init__(self, gateway: Gateway, stream: TableStream, schema: t.StructType) -> None:
        super().__init__(gateway)
        self._stream, self._schema = stream, schema

    def build(self) -> Any:
        return _Scan(self.gateway, self._stream, self._schema)


@implements("read.Scan")
class _Scan(ScanProxy):
    def __init__(self, gateway: Gateway, stream: TableStream, schema: t.StructType) -> None:
        super().__init__(gateway)
        self._stream, self._schema = stream, schema

    def identity(self) -> str:
        return f"lance stream of {self._stream.options.location.uri}"

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def toBatch(self) -> Any:
        options = self._stream.options
        given = next(name for name in _OF_STREAMS if options.get(name) is not None)
        raise InvalidRequestError(
            f"option {given} is an option of streams, not of batches",
            table=options.location.uri,
            option=given,
            action="Omit it, or read the table with readStream.",
        )

    def toMicroBatchStream(self, checkpoint: str) -> Any:  # noqa: ARG002  # offsets have it all
        return _MicroBatches(self.gateway, self._stream, self._schema)


@implements("read.streaming.MicroBatchStream", "read.streaming.SupportsTriggerAvailableNow")
class _MicroBatches(Proxy):
    """Reads versions in sequence; an offset is a position within a version."""

    def __init__(self, gateway: Gateway, stream: TableStream, schema: t.StructType) -> None:
        super().__init__(gateway)
        self._stream, self._schema = stream, schema
        self._last_version: int | None = None

    def identity(self) -> str:
        return f"lance {self._stream.options.location.uri}"

    def initialOffset(self) -> Any:
        return self._offset(self._stream.begin())

    def deserializeOffset(self, json: str) -> Any:
        return driver_object(self.gateway, "StreamOffset", json)

    def latestOffset(self, *given: Any) -> Any:
        if not given:
            return self._offset(self._stream.end())
        start, limit = given
        is_unlimited = str(limit.getClass().getSimpleName()) == "ReadAllAvailable"
        allowed = Allowance() if is_unlimited else self._stream.allowance()
        last = self._stream.head().version
        if self._last_version is not None:
            last = min(last, self._last_version)
        return self._offset(self._stream.reach(Offset.parse(start.json()), last, allowed))

    def reportLatestOffset(self) -> Any:
        return None

    def getDefaultReadLimit(self) -> Any:
        limits = self.gateway.connector(_LIMITS)
        # Spark only passes it back; the limits come from the options.
        return limits.maxFiles(_UNLIMITED) if self._stream.limits else limits.allAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._last_version = self._stream.head().version

    def planInputPartitions(self, start: Any, end: Any) -> Any:
        parts = self._stream.between(Offset.parse(start.json()), Offset.parse(end.json()))
        packed = pack_parts(parts, cores(self.gateway))
        return input_partitions(self.gateway, [encode(partition) for partition in packed])

    def createReaderFactory(self) -> Any:
        return reader_factory(self.gateway, read_partition, self._schema)

    def commit(self, end: Any) -> None:
        """Do nothing: versions are kept by the table's own rules."""

    def stop(self) -> None:
        """Do nothing: nothing is open between batches."""

    def _offset(self, at: Offset) -> Any:
        return driver_object(self.gateway, "StreamOffset", at.dump())


def stream_of(
    gateway: Gateway, target: TableOptions, given: Mapping[str, str], name: str
) -> StreamTable:
    """Return the stream of a table that was resolved already, with the options of the query."""
    options = TableOptions.of(target.location, add_zones(gateway.spark, given), STREAM_OPTIONS)
    rest = {**options.rest, **target.rest}
    return StreamTable(gateway, TableOptions(location=target.location, rest=rest), name)
