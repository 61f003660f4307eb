"""How much of a table does a batch of a stream take? As much as its options allow."""

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

from lancelake.spark.streaming.allowance import Allowance
from lancelake.spark.streaming.offsets import Offset
from lancelake.spark.streaming.source import VersionReader

_UNLIMITED = 1 << 31


class LimitedReader(VersionReader, SupportsTriggerAvailableNow):
    """Takes no more in a batch than its options allow; Spark 4.2 and newer ask for that."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Remember what is wanted; nothing is opened yet."""
        super().__init__(schema, options)
        self._last_version: int | None = None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return how far the next batch goes: as far as there is something, within the limit."""
        stream = self.stream
        allowed = Allowance() if isinstance(limit, ReadAllAvailable) else stream.allowance()
        last = stream.head().version
        if self._last_version is not None:
            last = min(last, self._last_version)
        return stream.reach(Offset.of(start), last, allowed).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        # Spark only hands it back; how much it is, the options say.
        return ReadMaxFiles(_UNLIMITED) if self.stream.limits else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the stream end with what there is now."""
        self._last_version = self.stream.head().version
