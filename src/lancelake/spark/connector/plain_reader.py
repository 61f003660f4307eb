"""Streams out of a table for the plain data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from lancelake.errors import InvalidRequestError
from lancelake.spark.streaming.identity import Offset
from lancelake.spark.streaming.stream_source import STREAM_OPTIONS, TableStream, pack_parts
from lancelake.spark.tasks.on_executors import Portable
from lancelake.spark.tasks.read_plan import encode, read_bytes
from lancelake.spark.values.options import parse


class VersionReader(Portable, DataSourceStreamReader):
    """Reads versions in sequence; an offset is a position within a version."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Store the options; nothing is opened yet."""
        self._schema = schema
        self._options = dict(options)

    @property
    def stream(self) -> TableStream:
        """The current table, and the content of the stream."""
        return TableStream.of(self._schema, parse(self._options, STREAM_OPTIONS))

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new stream."""
        return self.stream.begin().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the input of each task for the rows between two offsets."""
        parts = self.stream.between(Offset.of(start), Offset.of(end))
        return [InputPartition(encode(partition)) for partition in pack_parts(parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        yield from read_bytes(partition.value)


class UnlimitedReader(VersionReader):
    """Reads all available data in each batch, since Spark 4.1 does not support limits."""

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new stream, which must exist already."""
        stream = self.stream
        if stream.limits:
            raise InvalidRequestError(
                f"option {stream.limits[0]} needs Spark 4.2 or newer",
                action="Omit it, or use a newer Spark.",
                option=stream.limits[0],
            )
        return stream.begin().to_json()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # as Spark 4.1 has it
        """Return the end of the newest version."""
        return self.stream.end().to_json()
