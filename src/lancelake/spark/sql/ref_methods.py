"""Tags, branches, clones and earlier versions: methods of `LanceTable`, and procedures."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from lancelake.core.values.versions import AtTag, AtVersion, Reference
from lancelake.errors import InvalidRequestError
from lancelake.spark.sql.procedures import (
    TEXT,
    WHOLE,
    ResultRow,
    SparkTable,
    TableAccess,
    procedure,
    row_schema,
)

_VERSION = row_schema(version=WHOLE)
_NAMED = row_schema(name=TEXT, version=WHOLE)
_NAME = row_schema(name=TEXT)


@procedure("restores an older version as the newest", _VERSION)
def rollback(
    table: SparkTable, version: str | None = None, timestamp: str | None = None
) -> ResultRow:
    """Restore a version, or the newest at a time."""
    if (version is None) == (timestamp is None):
        raise InvalidRequestError(
            "rollback needs either a version or a timestamp", table=table.options.location.uri
        )
    if timestamp is None:
        return {"version": table.open_at(version).restore().version}
    return {"version": table.options.open(table.parse_time(timestamp)).restore().version}


@procedure("creates a tag for a version", _NAMED)
def tag(table: SparkTable, name: str, version: str | None = None) -> ResultRow:
    """Create a tag."""
    at = table.open_at(version)
    number = at.snapshot.version
    at.refs.create_tag(name, AtVersion(number))
    return {"name": name, "version": number}


@procedure("deletes a tag", _NAME)
def drop_tag(table: SparkTable, name: str) -> ResultRow:
    """Delete a tag; its version is kept."""
    table.open().refs.remove_tag(name)
    return {"name": name}


@procedure("creates a branch at a version", _NAMED)
def branch(table: SparkTable, name: str, version: str | None = None) -> ResultRow:
    """Create a branch."""
    return {"name": name, "version": table.open_at(version).refs.create_branch(name).version}


@procedure("deletes a branch", _NAME)
def drop_branch(table: SparkTable, name: str) -> ResultRow:
    """Delete a branch with its versions."""
    table.open().refs.remove_branch(name)
    return {"name": name}


@procedure("creates a shallow or deep clone of a table", _VERSION)
def clone(
    table: SparkTable, target: str, *, shallow: bool = True, version: str | None = None
) -> ResultRow:
    """Create a clone, which refers to the files of the table or has copies of them."""
    refs = table.open_at(version).refs
    copy = refs.clone_shallow if shallow else refs.clone_deep
    return {"version": copy(table.options.location.beside(target)).version}


class TableRefs(TableAccess):
    """Methods that list, create and delete tags and branches, and restore versions."""

    def tags(self) -> DataFrame:
        """Return the tags with their versions and branches.

        Returns:
            One row per tag.

        Examples:
            >>> table.createTag("stable")
            >>> [(row.name, row.version) for row in table.tags().collect()]
            [('stable', 1)]
        """
        return self._refs("tag")

    def branches(self) -> DataFrame:
        """Return the branches with the version and branch each was forked from.

        Returns:
            One row per branch.

        Examples:
            >>> table.createBranch("trial")
            >>> [row.name for row in table.branches().collect()]
            ['trial']
        """
        return self._refs("branch")

    def createTag(self, name: str, version: int | None = None) -> None:
        """Create a tag.

        Args:
            name: The name of the tag.
            version: The version, by default the newest.

        Raises:
            AlreadyExistsError: The tag exists.
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> table.createTag("stable", 1)
            >>> table.toDF(tag="stable").count()
            3
        """
        at = self._table.open_at(version)
        at.refs.create_tag(name, AtVersion(at.snapshot.version))

    def deleteTag(self, name: str) -> None:
        """Delete a tag; its version is kept.

        Args:
            name: The name of the tag.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> table.createTag("stable")
            >>> table.deleteTag("stable")
            >>> table.tags().count()
            0
        """
        self._table.open().refs.remove_tag(name)

    def createBranch(self, name: str, version: int | None = None) -> None:
        """Create a branch.

        Args:
            name: The name of the branch.
            version: The version to start from, by default the newest.

        Raises:
            AlreadyExistsError: The branch exists.

        Examples:
            >>> table.createBranch("trial")
            >>> LanceTable.forPath(spark, path, branch="trial").toDF().count()
            3
        """
        self._table.open_at(version).refs.create_branch(name)

    def deleteBranch(self, name: str) -> None:
        """Delete a branch with its versions.

        Args:
            name: The name of the branch.

        Raises:
            RefNotFoundError: The table has no such branch.

        Examples:
            >>> table.createBranch("trial")
            >>> table.deleteBranch("trial")
            >>> table.branches().count()
            0
        """
        self._table.open().refs.remove_branch(name)

    def restoreToVersion(self, version: int) -> None:
        """Restore an older version as the newest.

        Args:
            version: The version.

        Raises:
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> deleted = table.delete()
            >>> table.restoreToVersion(1)
            >>> table.toDF().count()
            3
        """
        self._restore(AtVersion(version))

    def restoreToTag(self, tag: str) -> None:
        """Restore the version of a tag as the newest.

        Args:
            tag: The name of the tag.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> table.createTag("stable")
            >>> deleted = table.delete()
            >>> table.restoreToTag("stable")
            >>> table.toDF().count()
            3
        """
        self._restore(AtTag(tag))

    def restoreToTimestamp(self, timestamp: str | datetime) -> None:
        """Restore the newest version at a time as the newest.

        Args:
            timestamp: The time, as text in the time zone of the session.

        Raises:
            VersionNotFoundError: There was no version at that time.

        Examples:
            >>> table.restoreToTimestamp("2100-01-01 00:00:00")
            >>> table.version()
            2
        """
        self._restore(self._table.parse_time(timestamp))

    def _restore(self, reference: Reference) -> None:
        self._table.options.open(reference).restore()

    def _refs(self, kind: str) -> DataFrame:
        return self._facts("refs").where(f"type = '{kind}'").drop("type")
