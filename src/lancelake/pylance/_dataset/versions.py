"""Methods of versions: history, change feed, branches, clones."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypedDict

import pyarrow as pa

from lancelake.clock import utc_from_ns
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values import versions as core_versions
from lancelake.core.values.metadata import FrozenMap, Location
from lancelake.core.values.writes import CommitChoices
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.arguments import (
    DatasetBasePath,
    Filter,
    VersionLike,
    branch_uri,
    from_base_path,
    os_errors,
    reference,
    to_base_path,
    uri_of,
)
from lancelake.pylance._dataset.arguments import reference as to_reference
from lancelake.pylance._dataset.notebook import NotebookList
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._dataset.transactions import Transaction, from_transaction
from lancelake.pylance._values.opened import call_text, describes_as, takes

VERSION_HEADER = ("version", "time", "rows", "fragments", "data files")
_TOTALS = sorted(name for name in dir(core_versions.VersionSummary) if name.startswith("total_"))
_SHOWN = ("total_rows", "total_fragments", "total_data_files")


class Version(TypedDict):
    """A version in the table's history."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """Number of a version."""

    version: int


def version_of(facts: core_versions.VersionFacts) -> Version:
    """Describe a version."""
    # pylance returns local times without a time zone; `fold` tells the two hours apart when clocks
    # are set back.
    utc = utc_from_ns(facts.timestamp_ns or 0)
    written = datetime.fromtimestamp(int(utc.timestamp())).replace(microsecond=utc.microsecond)
    metadata = dict(_totals(facts.summary))
    return Version(version=facts.version, timestamp=written, metadata=metadata)


def version_cells(version: Version) -> tuple[object, ...]:
    """Return a version for a table in a notebook."""
    counts = (version["metadata"][name] for name in _SHOWN)
    time = version["timestamp"].isoformat(" ")
    return (version["version"], time, *(f"{int(count):,}" for count in counts))


@lru_cache(maxsize=4096)
def _totals(summary: core_versions.VersionSummary) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(getattr(summary, name))) for name in _TOTALS)


class DatasetVersions(DatasetState):
    """Methods that list, check out and compare versions, and create branches and clones."""

    @property
    def version(self) -> int:
        """The open version.

        Examples:
            >>> ds.version
            1
        """
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The newest version of this version line.

        Examples:
            >>> old = lance.dataset("people.lance")
            >>> ds.delete("id = 1")
            {'num_deleted_rows': 1}
            >>> old.version, old.latest_version
            (1, 2)
        """
        return TablePlace(self._snapshot.location).latest_version().version

    def versions(self) -> list[Version]:
        """Return all versions, oldest first.

        Returns:
            One entry per version, with its number, time and metadata.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> [each["version"] for each in ds.versions()]
            [1, 2]
        """
        versions = map(version_of, TablePlace(self._snapshot.location).history())
        return NotebookList(versions, VERSION_HEADER, version_cells, is_newest_last=True)

    def get_version(self) -> Version:
        """Return the open version, in the form of `versions`.

        Returns:
            The number, the time and the metadata of the version.

        Examples:
            >>> ds.get_version()["version"]
            1
        """
        return version_of(self._table.history.facts())

    def checkout_version(self, version: VersionLike) -> Self:
        """Return the table at another version, tag, or branch and version.

        Args:
            version: A version number, the name of a tag, or a pair of a branch and a version; None
                as the version means the newest one of the branch.

        Returns:
            A new object; this one keeps its version.

        Raises:
            VersionNotFoundError: The table does not have the version, or it was cleaned up.
            RefNotFoundError: The table has no such tag or branch.

        Examples:
            >>> ds.delete("id = 1")
            {'num_deleted_rows': 1}
            >>> ds.checkout_version(1).count_rows()
            3
        """
        snapshot = self._table.at(reference(version)).snapshot
        return self._of(snapshot, self._default_scan_options, self._uri, lock=self._lock)

    def checkout_latest(self) -> None:
        """Move this object to the newest version.

        Examples:
            >>> other = lance.dataset("people.lance")
            >>> ds.insert(ds.head(1))
            >>> other.checkout_latest()
            >>> other.version
            2
        """
        self._snapshot = self._table.at(core_versions.Latest()).snapshot

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
    ) -> core_versions.ChangeFeedPlan:
        """Plan the changes that `changes` streams, as tasks that can run anywhere.

        Args:
            begin: Version, tag or time after which changes are returned.
            end: Version, tag or time of the last change; by default this version.
            kinds: Kinds to return: `insert`, `update_preimage`, `update_postimage` and `delete`.
            columns: Columns of the table to return; by default all.
            filter: SQL, or an expression of `pyarrow.compute`, on the columns of the table.
            net: Return the net difference between the two versions, at most one change per row.
            batch_size: Rows per batch, at most.

        Returns:
            The plan, whose tasks can be sent to other processes.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> len(ds.plan_changes(1).tasks)
            1
        """
        request = core_versions.ChangeRequest(
            columns=None if columns is None else tuple(columns),
            filter=filter,
            kinds=core_versions.parse_kinds(kinds),
            batch_rows=batch_size,
            is_net=net,
        )
        last = None if end is None else _point(end)
        return self._table.history.changes(_point(begin), last, request)

    @takes(plan_changes)
    def changes(self, **kwargs: Any) -> pa.RecordBatchReader:
        """Stream row-level changes after `begin`, up to and including `end`.

        The table must have stable row ids.

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
        return core_versions.run(self.plan_changes(**kwargs))

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
        here, history = self._snapshot, self._table.history
        if compared_against is not None:
            versions = history.range(
                core_versions.AtVersion(compared_against), core_versions.AtVersion(here.version)
            )
        elif begin_date is not None or end_date is not None:
            versions = _between_dates(self._table, begin_date, end_date)
        elif begin_version is None and end_version is None:
            problem = "Must specify either compared_against or both begin_version and end_version"
            raise InvalidRequestError(problem, table=here.location.uri)
        elif begin_version is None or end_version is None:
            both = "Must specify both with_begin_version and with_end_version"
            raise InvalidRequestError(f"Invalid user input: {both}", table=here.location.uri)
        else:
            versions = history.range(
                core_versions.AtVersion(begin_version), core_versions.AtVersion(end_version)
            )
        return DatasetDelta(self._table, versions)

    def diff(self, before: VersionLike, after: VersionLike | None = None) -> core_versions.Diff:
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
        old = self._table.at(reference(before))
        new = self._table if after is None else self._table.at(reference(after))
        return old.history.diff_to(new.snapshot)

    @os_errors()
    def create_branch(
        self,
        branch: str,
        reference: VersionLike | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Create a branch at this version, or at another.

        Args:
            branch: Name of the branch.
            reference: Version, tag, or branch and version to start from; by default this version.
            storage_options: Must be those of the table, if given.

        Returns:
            The branch, open at its first version.

        Raises:
            AlreadyExistsError: The branch exists.
            InvalidNameError: The name is not allowed.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> trial.truncate_table()
            >>> trial.count_rows(), lance.dataset("people.lance").count_rows()
            (0, 3)
        """
        own = self._snapshot.location.storage_options
        if storage_options is not None and storage_options != own:
            raise UnsupportedError(
                "a branch cannot have storage options that differ from its table's"
            )
        source = self._at(reference)
        snapshot = source.refs.create_branch(branch, self._choices)
        where: Any = self
        uri = branch_uri(where, branch)
        return self._of(snapshot, self._default_scan_options, uri, lock=self._lock)

    def shallow_clone(
        self,
        target_path: str | Path,
        reference: VersionLike,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Create a table elsewhere that refers to the files of this one.

        Args:
            target_path: Path or URI of the new table.
            reference: Version, tag, or branch and version to clone.
            storage_options: Options of the object store of the new table.

        Returns:
            The new table. It cannot be read after files that it refers to are cleaned up.

        Raises:
            AlreadyExistsError: There is a table at `target_path`.

        Examples:
            >>> ds.shallow_clone("copy.lance", 1).count_rows()
            3
        """
        roots = self._snapshot.location.confine_to
        target = Location.parse(target_path, storage_options, confine_to=roots)
        snapshot = self._at(reference).refs.clone_shallow(target)
        return self._of(snapshot, self._default_scan_options, uri_of(target_path))

    @describes_as(shallow_clone)
    def deep_clone(
        self,
        target_path: str | Path,
        reference: VersionLike,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Copy a version with all its files.

        Args:
            reference: Version, tag, or branch and version to copy.

        Returns:
            The new table, which is independent of this one.

        Raises:
            AlreadyExistsError: There is a table at `target_path`.

        Examples:
            >>> ds.deep_clone("copy.lance", 1).count_rows()
            3
        """
        roots = self._snapshot.location.confine_to
        target = Location.parse(target_path, storage_options, confine_to=roots)
        snapshot = self._at(reference).refs.clone_deep(target)
        return self._of(snapshot, self._default_scan_options, uri_of(target_path))

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the registered base paths by id.

        Returns:
            Roots other than the table's own that hold files of the table.

        Examples:
            >>> clone = ds.shallow_clone("copy.lance", 1)
            >>> len(clone.base_paths())
            1
        """
        return {base.id: from_base_path(base) for base in self._snapshot.manifest.base_paths}

    def add_bases(
        self,
        new_bases: list[DatasetBasePath],
        transaction_properties: dict[str, str] | None = None,
    ) -> Self:
        """Register additional base paths.

        Args:
            new_bases: The base paths.
            transaction_properties: Properties of the transaction.

        Returns:
            This dataset at the new version.

        Examples:
            >>> base = lance.DatasetBasePath("/mnt/archive", name="archive")
            >>> [each.name for each in ds.add_bases([base]).base_paths().values()]
            ['archive']
        """
        properties = FrozenMap(transaction_properties or {})
        choices = CommitChoices(properties=properties, lock=self._lock)
        added = tuple(to_base_path(base) for base in new_bases)
        self._snapshot = self._table.refs.add_bases(added, choices)
        return self

    def _at(self, version: VersionLike | None) -> Table:
        return self._table if version is None else self._table.at(to_reference(version))


PointLike = int | str | datetime


class DatasetDelta:
    """Inserted, updated and deleted rows between two versions by row lineage, as in pylance.

    Rows are those that still exist in this version, with their current values; `changes` returns
    every change with its own values.
    """

    def __init__(self, table: Table, versions: core_versions.VersionRange) -> None:
        self._history = table.history
        self._versions = versions

    def __repr__(self) -> str:
        versions = self._versions
        return call_text(self, self._history.location.uri, begin=versions.begin, end=versions.end)

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions from the first version to the last, oldest first."""
        numbers = range(self._versions.begin + 1, self._versions.end + 1)
        entries = (self._versions.after(number).transaction for number in numbers)
        return [from_transaction(entry) for entry in entries if entry is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Stream the rows that were created in the range."""
        return self._history.inserted_rows(self._versions.begin, self._versions.end)

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Stream the rows from before the range that were last updated in it."""
        return self._history.updated_rows(self._versions.begin, self._versions.end)

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Stream the ids of rows that are in the first version and not in the last."""
        return self._history.deleted_row_ids(self._versions.begin, self._versions.end)


def _between_dates(
    table: Table, begin: datetime | None, end: datetime | None
) -> core_versions.VersionRange:
    if begin is None:
        problem = "Must specify begin_date when end_date is given"
        raise InvalidRequestError(problem, table=table.location.uri)
    last = None if end is None else core_versions.time_reference(end)
    return table.history.range(core_versions.time_reference(begin), last)


def _point(value: Any) -> core_versions.Point:
    """Parse a version, a tag or a time."""
    match value:
        case datetime():
            return core_versions.time_reference(value)
        case bool():
            pass
        case int():
            return core_versions.AtVersion(value)
        case str():
            return core_versions.AtTag(value)
        case _:
            pass
    problem = f"expected a version number, a tag or a time, not {type(value).__name__}"
    raise InvalidRequestError(problem)
