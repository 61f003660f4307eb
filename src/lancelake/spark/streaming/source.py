"""A stream out of a table: all rows first, then what each version changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lancelake.errors import InvalidRequestError, VersionNotFoundError
from lancelake.spark.options import TableOptions, parse, parse_time
from lancelake.spark.streaming.allowance import Allowance
from lancelake.spark.streaming.offsets import Offset
from lancelake.spark.streaming.options import LIMITS, STREAM_OPTIONS
from lancelake.spark.streaming.parts import (
    StreamPart,
    Wanted,
    encode,
    read,
    snapshot_parts,
    version_parts,
)
from lancelake.spark.types import arrow_schema
from lancelake.table.change_feed.request import FEED_NAMES
from lancelake.table.change_feed.versions import version_range
from lancelake.table.open import AsOf, AtVersion, Latest, OnBranch, open_snapshot
from lancelake.table.snapshot import Snapshot

_LATEST = "latest"
_MICROSECOND = 1000


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads versions one after the other; an offset says how much of which one was read."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Remember what is wanted; nothing is opened yet."""
        self._schema = schema
        self._options = dict(options)
        self._last_version: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new stream starts: before all rows, or before a version."""
        table = _Stream.of(self._schema, self._options)
        starting = table.options.get("startingVersion")
        time = table.options.get("startingTimestamp")
        if starting is not None and time is not None:
            raise InvalidRequestError("startingVersion and startingTimestamp exclude each other")
        head = table.head()
        if time is not None:
            # What was committed at the very time belongs to the stream.
            before = AsOf(parse_time(time).time_ns - _MICROSECOND)
            return Offset(version_range(head, before, None).begin + 1, 0).to_json()
        if starting is None:
            return Offset(head.version, 0, is_snapshot=True).to_json()
        if starting.lower() == _LATEST:
            return Offset(head.version + 1, 0).to_json()
        return Offset(table.options.whole("startingVersion") or 0, 0).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return how far the next batch goes: as far as there is something, within the limit."""
        table = _Stream.of(self._schema, self._options)
        allowed = Allowance() if isinstance(limit, ReadAllAvailable) else table.allowance()
        last = table.head().version
        if self._last_version is not None:
            last = min(last, self._last_version)
        return table.reach(Offset.of(start), last, allowed).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        table = _Stream.of(self._schema, self._options)
        is_limited = any(table.options.get(name) is not None for name in LIMITS)
        # Spark only hands it back; how much it is, the options say.
        return ReadMaxFiles(_UNLIMITED) if is_limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the stream end with what there is now."""
        self._last_version = _Stream.of(self._schema, self._options).head().version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the parts between two offsets."""
        table = _Stream.of(self._schema, self._options)
        found = table.between(Offset.of(start), Offset.of(end))
        return [InputPartition(encode(part)) for part in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        yield from read(partition.value)


_UNLIMITED = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """The table of a stream, and what is wanted of it."""

    options: TableOptions
    wanted: Wanted

    @staticmethod
    def of(schema: StructType, options: Mapping[str, str]) -> _Stream:
        parsed = parse(options, STREAM_OPTIONS)
        wanted = Wanted(
            schema=arrow_schema(schema),
            columns=tuple(name for name in schema.fieldNames() if name not in FEED_NAMES),
            with_changes=parsed.flag("readChangeFeed", default=False),
            skips_changes=parsed.flag("skipChangeCommits", default=False),
        )
        return _Stream(options=parsed, wanted=wanted)

    def head(self) -> Snapshot:
        branch = self.options.get("branch")
        return open_snapshot(
            self.options.location, Latest() if branch is None else OnBranch(branch)
        )

    def whole(self, name: str) -> int | None:
        found = self.options.whole(name)
        if found == 0:
            raise InvalidRequestError(f"option {name} must be at least 1")
        return found

    def allowance(self) -> Allowance:
        """Return how much a batch may take."""
        return Allowance(
            versions=self.whole("maxVersionsPerTrigger"),
            files=self.whole("maxFilesPerTrigger"),
            rows=self.whole("maxRowsPerTrigger"),
            size_bytes=self.whole("maxBytesPerTrigger"),
        )

    def reach(self, start: Offset, last: int, allowed: Allowance) -> Offset:
        """Return the offset that a batch reaches."""
        at = start
        while at.version <= last and allowed.begin_version():
            ahead = self.parts(at)[at.done :]
            taken = allowed.take(ahead)
            if taken < len(ahead):
                return Offset(at.version, at.done + taken, at.is_snapshot)
            at = Offset(at.version + 1, 0)
        return at

    def between(self, start: Offset, end: Offset) -> list[StreamPart]:
        """Return the parts from one offset to another."""
        found: list[StreamPart] = []
        at = start
        while at.version < end.version:
            found += self.parts(at)[at.done :]
            at = Offset(at.version + 1, 0)
        if end.done:
            found += self.parts(end)[at.done : end.done]
        return found

    def parts(self, at: Offset) -> list[StreamPart]:
        """Return all parts of what a version brings."""
        if at.is_snapshot:
            return snapshot_parts(self._version(at.version), self.wanted)
        if at.version <= 1:
            return snapshot_parts(self._version(1), self.wanted) if at.version == 1 else []
        return version_parts(self._version(at.version - 1), self._version(at.version), self.wanted)

    def _version(self, number: int) -> Snapshot:
        head = self.head()
        try:
            return open_snapshot(head.location, AtVersion(number), main=head.main_location)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"the stream has not read version {number} yet, and it was cleaned up",
                table=head.location.uri,
                version=number,
                action=(
                    "Keep versions longer than a stream may stand still, or start it anew with "
                    "another checkpoint."
                ),
            ) from error
