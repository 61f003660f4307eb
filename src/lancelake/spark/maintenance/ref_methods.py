"""Methods of `LanceTable` for tags, branches and older versions."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from lancelake.spark.maintenance.table_access import TableAccess
from lancelake.spark.options.table_options import parse_time
from lancelake.spark.options.times import zoned
from lancelake.table.branches import remove_branch
from lancelake.table.clone import create_branch
from lancelake.table.open import AtTag, AtVersion, Reference, open_snapshot
from lancelake.table.restore import restore
from lancelake.table.tags import create_tag, remove_tag


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
        at = self._at(version)
        create_tag(at, name, AtVersion(at.version))

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
        remove_tag(self.snapshot(), name)

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
        create_branch(self._at(version), name)

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
        remove_branch(self.snapshot().main_location, name)

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
        self._restore(parse_time(zoned(self._spark, timestamp), self.uri))

    def _restore(self, reference: Reference) -> None:
        head = self.snapshot()
        restore(open_snapshot(head.location, reference, main=head.main_location))

    def _refs(self, kind: str) -> DataFrame:
        return self._facts("refs").where(f"type = '{kind}'").drop("type")
