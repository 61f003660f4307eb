"""Dataset methods for changes between versions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments.reference import VersionLike, reference
from lancelake.pylance._dataset.arguments.scan_arguments import Filter
from lancelake.pylance._dataset.writing.transaction import Transaction, from_transaction
from lancelake.pylance._values.reprs import call_text
from lancelake.table.change_feed import delta
from lancelake.table.change_feed.execute import run
from lancelake.table.change_feed.planner import plan_changes
from lancelake.table.change_feed.request import ChangeRequest, parse_kinds
from lancelake.table.change_feed.tasks import ChangeFeedPlan
from lancelake.table.change_feed.versions import Point, VersionRange, version_range
from lancelake.table.diff import Diff, diff
from lancelake.table.open import AtTag, AtVersion, open_snapshot, time_reference

PointLike = int | str | datetime


class DatasetDelta:
    """Inserted, updated and deleted rows between two versions by row lineage, as in pylance.

    Rows are those that still exist in this version, with their current values; `changes` returns
    every change with its own values.
    """

    def __init__(self, snapshot: Snapshot, versions: VersionRange) -> None:
        self._snapshot = snapshot
        self._versions = versions

    def __repr__(self) -> str:
        versions = self._versions
        return call_text(self, self._snapshot.location.uri, begin=versions.begin, end=versions.end)

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions from the first version to the last, oldest first."""
        numbers = range(self._versions.begin + 1, self._versions.end + 1)
        found = (self._versions.after(number).transaction for number in numbers)
        return [from_transaction(entry) for entry in found if entry is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Stream the rows that were created in the range."""
        return delta.inserted_rows(self._snapshot, self._versions.begin, self._versions.end)

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Stream the rows from before the range that were last updated in it."""
        return delta.updated_rows(self._snapshot, self._versions.begin, self._versions.end)

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Stream the ids of rows that are in the first version and not in the last."""
        return delta.deleted_row_ids(self._snapshot, self._versions.begin, self._versions.end)


class DatasetHistory:
    """Methods that compare versions."""

    _snapshot: Snapshot

    def changes(
        self,
        begin: PointLike,
        end: PointLike | None = None,
        *,
        kinds: str | Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        filter: Filter = None,
        net: bool = False,
        batch_size: int | None = None,
    ) -> pa.RecordBatchReader:
        """Stream row-level changes after `begin`, up to and including `end`.

        The table must have stable row ids.

        Args:
            begin: Version, tag or time after which changes are returned.
            end: Version, tag or time of the last change; by default this version.
            kinds: Kinds to return: `insert`, `update_preimage`, `update_postimage` and `delete`.
            columns: Columns of the table to return; by default all.
            filter: SQL, or an expression of `pyarrow.compute`, on the columns of the table.
            net: Return the net difference between the two versions, at most one change per row.
            batch_size: Rows per batch, at most.

        Returns:
            Rows with the columns of the last version, `_rowid`, `_change_type`, and the version and
            the time of the commit.

        Raises:
            UnsupportedError: The table has no stable row ids.
            VersionNotFoundError: A version in the range was cleaned up.

        Examples:
            >>> updated = ds.update({"score": "9.0"}, where="id = 1")
            >>> changes = ds.changes(1, columns=["score"]).read_all()
            >>> changes.select(["_change_type", "score"]).to_pydict()
            {'_change_type': ['update_preimage', 'update_postimage'], 'score': [1.5, 9.0]}
        """
        return run(
            self.plan_changes(
                begin,
                end,
                kinds=kinds,
                columns=columns,
                filter=filter,
                net=net,
                batch_size=batch_size,
            )
        )

    def plan_changes(
        self,
        begin: PointLike,
        end: PointLike | None = None,
        *,
        kinds: str | Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        filter: Filter = None,
        net: bool = False,
        batch_size: int | None = None,
    ) -> ChangeFeedPlan:
        """Plan the changes that `changes` streams, as tasks that can run anywhere.

        Args:
            begin: Version, tag or time after which changes are returned.
            end: Version, tag or time of the last change; by default this version.
            kinds: Kinds to return.
            columns: Columns of the table to return; by default all.
            filter: SQL, or an expression of `pyarrow.compute`.
            net: Return the net difference between the two versions.
            batch_size: Rows per batch, at most.

        Returns:
            The plan, whose tasks can be sent to other processes.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> len(ds.plan_changes(1).tasks)
            1
        """
        request = ChangeRequest(
            columns=None if columns is None else tuple(columns),
            filter=filter,
            kinds=parse_kinds(kinds),
            batch_rows=batch_size,
            is_net=net,
        )
        last = None if end is None else _point(end)
        return plan_changes(self._snapshot, _point(begin), last, request)

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
        begin_date: datetime | None = None,
        end_date: datetime | None = None,
    ) -> DatasetDelta:
        """Compare this version with an older one, or two versions or times with each other.

        Args:
            compared_against: The older version.
            begin_version: The first of two versions.
            end_version: The second of two versions.
            begin_date: The first of two times.
            end_date: The second of two times; by default now.

        Returns:
            The comparison, by the lineage of rows; the table must have stable row ids.

        Raises:
            InvalidRequestError: No range is given, or only half of one.

        Examples:
            >>> ds.insert([{"id": 4, "name": "di", "score": 4.5}])
            >>> ds.delta(compared_against=1).get_inserted_rows().read_all()["id"].to_pylist()
            [4]
        """
        here = self._snapshot
        if compared_against is not None:
            versions = version_range(here, AtVersion(compared_against), AtVersion(here.version))
        elif begin_date is not None or end_date is not None:
            versions = _between_dates(here, begin_date, end_date)
        elif begin_version is None and end_version is None:
            problem = "Must specify either compared_against or both begin_version and end_version"
            raise InvalidRequestError(problem, table=here.location.uri)
        elif begin_version is None or end_version is None:
            both = "Must specify both with_begin_version and with_end_version"
            problem = f"Invalid user input: {both}"
            raise InvalidRequestError(problem, table=here.location.uri)
        else:
            versions = version_range(here, AtVersion(begin_version), AtVersion(end_version))
        return DatasetDelta(here, versions)

    def diff(self, before: VersionLike, after: VersionLike | None = None) -> Diff:
        """Compare two versions.

        Args:
            before: Version, tag, or branch and version.
            after: Version, tag, or branch and version; by default this one.

        Returns:
            What differs: columns, fragments, rows, indices and settings.

        Raises:
            VersionNotFoundError: The table does not have a version, or it was cleaned up.

        Examples:
            >>> ds.add_columns({"double": "score * 2"})
            >>> [change.name for change in ds.diff(1).columns]
            ['double']
        """
        here = self._snapshot
        old = open_snapshot(here.location, reference(before), main=here.main_location)
        if after is None:
            return diff(old, here)
        return diff(old, open_snapshot(here.location, reference(after), main=here.main_location))


def _between_dates(here: Snapshot, begin: datetime | None, end: datetime | None) -> VersionRange:
    if begin is None:
        problem = "Must specify begin_date when end_date is given"
        raise InvalidRequestError(problem, table=here.location.uri)
    return version_range(here, time_reference(begin), None if end is None else time_reference(end))


def _point(value: Any) -> Point:
    """Parse a version, a tag or a time."""
    match value:
        case datetime():
            return time_reference(value)
        case bool():
            pass
        case int():
            return AtVersion(value)
        case str():
            return AtTag(value)
        case _:
            pass
    problem = f"expected a version number, a tag or a time, not {type(value).__name__}"
    raise InvalidRequestError(problem)
