"""The table of a stream: start, batch ends, and the parts between two offsets."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, VersionNotFoundError
from lancelake.spark.options.table_options import TableOptions, parse, parse_time
from lancelake.spark.streaming.allowance import Allowance
from lancelake.spark.streaming.identity import (
    FieldIds,
    Identity,
    ensure_same_columns,
    expected_ids,
)
from lancelake.spark.streaming.offsets import Offset
from lancelake.spark.streaming.options import LIMITS, STREAM_OPTIONS
from lancelake.spark.streaming.parts import StreamContent, StreamPart, snapshot_parts, version_parts
from lancelake.spark.types import arrow_schema
from lancelake.table.change_feed.request import FEED_NAMES
from lancelake.table.change_feed.versions import version_range
from lancelake.table.open import AsOf, AtVersion, Latest, OnBranch, open_snapshot

_LATEST = "latest"
_MICROSECOND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStream:
    """A table, and the content of a stream."""

    options: TableOptions
    wanted: StreamContent

    @staticmethod
    def of(schema: StructType, options: Mapping[str, str]) -> TableStream:
        """Parse the options of a stream."""
        parsed = parse(options, STREAM_OPTIONS)
        wanted = StreamContent(
            schema=arrow_schema(schema),
            columns=tuple(name for name in schema.fieldNames() if name not in FEED_NAMES),
            with_changes=parsed.flag("readChangeFeed", default=False),
            skips_changes=parsed.flag("skipChangeCommits", default=False),
        )
        return TableStream(options=parsed, wanted=wanted)

    def begin(self) -> Offset:
        """Return the start of a new stream: before all rows, or before a version."""
        starting = self.options.get("startingVersion")
        time = self.options.get("startingTimestamp")
        if starting is not None and time is not None:
            raise InvalidRequestError("startingVersion and startingTimestamp cannot be combined")
        head = self.head()
        if time is not None:
            # Versions committed exactly at that time are included.
            before = AsOf(parse_time(time, head.location.uri).time_ns - _MICROSECOND)
            found = Offset(version_range(head, before, None).begin + 1, 0)
        elif starting is None:
            found = Offset(head.version, 0, is_snapshot=True)
        elif starting.lower() == _LATEST:
            found = Offset(head.version + 1, 0)
        else:
            found = Offset(self._existing(self.options.whole("startingVersion") or 0, head), 0)
        return self._identified(found, head, expected_ids(head, self.wanted.paths, {}))

    def _existing(self, number: int, head: Snapshot) -> int:
        if number > head.version + 1:
            raise InvalidRequestError(
                f"startingVersion is {number}, but the newest version is {head.version}",
                table=head.location.uri,
                option="startingVersion",
                action=f"Start at {head.version + 1} or before, or at {_LATEST}.",
            )
        return number

    def end(self) -> Offset:
        """Return the end of the newest version."""
        head = self.head()
        ids = expected_ids(head, self.wanted.paths, {})
        return self._identified(Offset(head.version + 1, 0), head, ids)

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
        """Return the limits of a batch."""
        return Allowance(
            versions=self._whole("maxVersionsPerTrigger"),
            files=self._whole("maxFilesPerTrigger"),
            rows=self._whole("maxRowsPerTrigger"),
            size_bytes=self._whole("maxBytesPerTrigger"),
        )

    def reach(self, start: Offset, last: int, allowed: Allowance) -> Offset:
        """Return the end of a batch; unchanged if there is nothing to read."""
        head, ids = self._checked(start)
        at = start
        while at.version <= last and allowed.begin_version():
            ahead = self._parts(at, ids)[at.done :]
            taken = allowed.take(ahead)
            if taken < len(ahead):
                at = Offset(at.version, at.done + taken, at.is_snapshot)
                break
            at = Offset(at.version + 1, 0)
        return start if at == start else self._identified(at, head, ids)

    def between(self, start: Offset, end: Offset) -> list[StreamPart]:
        """Return the parts from one offset to another."""
        head, ids = self._checked(start)
        if end.identity is not None:
            end.identity.ensure_same_table(head)
        found: list[StreamPart] = []
        at = start
        while at.version < end.version:
            found += self._parts(at, ids)[at.done :]
            at = Offset(at.version + 1, 0)
        if end.done:
            found += self._parts(end, ids)[at.done : end.done]
        return found

    def _checked(self, start: Offset) -> tuple[Snapshot, FieldIds]:
        """Open the table of an offset; return its newest version and the column ids."""
        head, identity = self.head(), start.identity
        if identity is not None:
            identity.ensure_same_table(head)
        known = {} if identity is None else identity.fields
        return head, expected_ids(head, self.wanted.paths, known)

    def _identified(self, at: Offset, head: Snapshot, ids: FieldIds) -> Offset:
        """Return an offset with the identity of its table."""
        seen = head
        if 1 <= at.last_seen < head.version:
            # A version that was cleaned up cannot identify the table; the newest can.
            with contextlib.suppress(VersionNotFoundError):
                seen = self._version(at.last_seen)
        return replace(at, identity=Identity.of(seen, ids))

    def _parts(self, at: Offset, ids: FieldIds) -> list[StreamPart]:
        """Return all parts of a version."""
        if at.version < 1:
            return []
        after = self._version(at.version)
        if at.is_snapshot or at.version == 1:
            ensure_same_columns(ids, None, after)
            return snapshot_parts(after, self.wanted)
        before = self._version(at.version - 1)
        ensure_same_columns(ids, before, after)
        return version_parts(before, after, self.wanted)

    def _version(self, number: int) -> Snapshot:
        head = self.head()
        try:
            return open_snapshot(head.location, AtVersion(number), main=head.main_location)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"the stream has not read version {number} yet, but it was cleaned up",
                table=head.location.uri,
                version=number,
                action=(
                    "Retain versions for longer than a stream may be stopped, or restart it "
                    "with a new checkpoint."
                ),
            ) from error
