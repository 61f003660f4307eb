"""The table of a stream: where it starts, how far a batch goes, what lies between two offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from lancelake.errors import InvalidRequestError, VersionNotFoundError
from lancelake.spark.options import TableOptions, parse, parse_time
from lancelake.spark.streaming.allowance import Allowance
from lancelake.spark.streaming.offsets import Offset
from lancelake.spark.streaming.options import LIMITS, STREAM_OPTIONS
from lancelake.spark.streaming.parts import StreamPart, Wanted, snapshot_parts, version_parts
from lancelake.spark.types import arrow_schema
from lancelake.table.change_feed.request import FEED_NAMES
from lancelake.table.change_feed.versions import version_range
from lancelake.table.open import AsOf, AtVersion, Latest, OnBranch, open_snapshot
from lancelake.table.snapshot import Snapshot

_LATEST = "latest"
_MICROSECOND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStream:
    """A table, and what a stream wants of it."""

    options: TableOptions
    wanted: Wanted

    @staticmethod
    def of(schema: StructType, options: Mapping[str, str]) -> TableStream:
        """Understand the options of a stream."""
        parsed = parse(options, STREAM_OPTIONS)
        wanted = Wanted(
            schema=arrow_schema(schema),
            columns=tuple(name for name in schema.fieldNames() if name not in FEED_NAMES),
            with_changes=parsed.flag("readChangeFeed", default=False),
            skips_changes=parsed.flag("skipChangeCommits", default=False),
        )
        return TableStream(options=parsed, wanted=wanted)

    def begin(self) -> Offset:
        """Return where a new stream starts: before all rows, or before a version."""
        starting = self.options.get("startingVersion")
        time = self.options.get("startingTimestamp")
        if starting is not None and time is not None:
            raise InvalidRequestError("startingVersion and startingTimestamp exclude each other")
        head = self.head()
        if time is not None:
            # What was committed at the very time belongs to the stream.
            before = AsOf(parse_time(time).time_ns - _MICROSECOND)
            return Offset(version_range(head, before, None).begin + 1, 0)
        if starting is None:
            return Offset(head.version, 0, is_snapshot=True)
        if starting.lower() == _LATEST:
            return Offset(head.version + 1, 0)
        return Offset(self.options.whole("startingVersion") or 0, 0)

    def head(self) -> Snapshot:
        """Return the newest version."""
        branch = self.options.get("branch")
        return open_snapshot(
            self.options.location, Latest() if branch is None else OnBranch(branch)
        )

    @property
    def limits(self) -> list[str]:
        """The options that limit a batch."""
        return [name for name in LIMITS if self.options.get(name) is not None]

    def _whole(self, name: str) -> int | None:
        found = self.options.whole(name)
        if found == 0:
            raise InvalidRequestError(f"option {name} must be at least 1")
        return found

    def allowance(self) -> Allowance:
        """Return how much a batch may take."""
        return Allowance(
            versions=self._whole("maxVersionsPerTrigger"),
            files=self._whole("maxFilesPerTrigger"),
            rows=self._whole("maxRowsPerTrigger"),
            size_bytes=self._whole("maxBytesPerTrigger"),
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
