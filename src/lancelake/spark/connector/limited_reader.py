"""Streams of the plain data source with limits of their batches, which Spark 4.2 and newer have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lancelake.spark.connector.plain_reader import VersionReader
from lancelake.spark.streaming.identity import Offset
from lancelake.spark.streaming.stream_source import Allowance

_UNLIMITED = 1 << 31


class LimitedReader(VersionReader, SupportsTriggerAvailableNow):
    """Limits its batches as set by options; Spark 4.2 and newer support that."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Store the options; nothing is opened yet."""
        super().__init__(schema, options)
        self._last_version: int | None = None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch: all available data within the limits."""
        stream = self.stream
        allowed = Allowance() if isinstance(limit, ReadAllAvailable) else stream.allowance()
        last = stream.head().version
        if self._last_version is not None:
            last = min(last, self._last_version)
        return stream.reach(Offset.of(start), last, allowed).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit set by the options."""
        # Spark only passes it back; the limits come from the options.
        return ReadMaxFiles(_UNLIMITED) if self.stream.limits else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the stream end with the data available now."""
        self._last_version = self.stream.head().version
