"""Tags and branches of a dataset."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from datetime import datetime
from typing import TypedDict, TypeVar

from lancelake.core.table import Table
from lancelake.core.values.versions import Branch as BranchDocument
from lancelake.core.values.versions import OnBranch, Reference, tag_time
from lancelake.core.values.versions import Tag as TagDocument
from lancelake.errors import InvalidRequestError, naming
from lancelake.pylance._dataset.arguments import VersionLike, os_errors
from lancelake.pylance._dataset.arguments import reference as to_reference
from lancelake.pylance._dataset.notebook import table_html

T = TypeVar("T")


class Tag(TypedDict, total=False):
    """The version of a tag."""

    branch: str | None
    version: int
    manifest_size: int
    created_at: datetime | None
    updated_at: datetime | None
    metadata: dict[str, str]


class Branch(TypedDict, total=False):
    """The origin of a branch."""

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


class Tags:
    """The tags of a table: names of versions that cleanups keep."""

    def __init__(self, table: Table) -> None:
        self._refs = table.refs

    def __repr__(self) -> str:
        versions = [f"{name}={tag['version']}" for name, tag in self.list().items()]
        return f"Tags({', '.join(versions)})"

    def _repr_html_(self) -> str:
        rows = [(n, t["branch"] or "main", t["version"]) for n, t in self.list().items()]
        return table_html(("tag", "branch", "version"), rows)

    def list(self) -> dict[str, Tag]:
        """Return all tags by name.

        Returns:
            The version and the branch of each tag.

        Examples:
            >>> ds.tags.create("stable")
            >>> {name: tag["version"] for name, tag in ds.tags.list().items()}
            {'stable': 1}
        """
        tags = self._refs.tags()
        with naming(self._refs.snapshot.main_location.uri):
            return {name: _tag(tag) for name, tag in tags.items()}

    def list_ordered(self, order: str | None = None) -> builtins.list[tuple[str, Tag]]:
        """Return all tags by version.

        Args:
            order: `desc`, the default, for the newest first, or `asc`.

        Examples:
            >>> ds.tags.create("stable")
            >>> [name for name, tag in ds.tags.list_ordered("asc")]
            ['stable']
        """
        return _sort(self.list(), lambda tag: tag["version"], order)

    def get_version(self, tag: str) -> int:
        """Return the version of a tag.

        Args:
            tag: The name of the tag.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags.get_version("stable")
            1
        """
        return self._refs.tag(tag).version

    def create(self, tag: str, reference: VersionLike | None = None) -> None:
        """Create a tag.

        Args:
            tag: The name of the tag.
            reference: Version, tag, or branch and version; by default the open version.

        Raises:
            AlreadyExistsError: The tag exists.
            InvalidNameError: The name is not allowed.
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> ds.tags.create("stable", 1)
            >>> lance.dataset("people.lance", version="stable").version
            1
        """
        self._refs.create_tag(tag, self._reference(reference))

    def update(self, tag: str, reference: VersionLike | None = None) -> None:
        """Move a tag to another version.

        Args:
            tag: The name of the tag.
            reference: Version, tag, or branch and version; by default the open version.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.truncate_table()
            >>> ds.tags.update("stable", 2)
            >>> ds.tags.get_version("stable")
            2
        """
        self._refs.move_tag(tag, self._reference(reference))

    def delete(self, tag: str) -> None:
        """Delete a tag; its version is kept.

        Args:
            tag: The name of the tag.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags.delete("stable")
            >>> ds.tags.list()
            {}
        """
        self._refs.remove_tag(tag)

    def replace_metadata(self, tag: str, metadata: dict[str, str]) -> None:
        """Replace the metadata of a tag.

        Args:
            tag: The name of the tag.
            metadata: The new keys and values.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags.replace_metadata("stable", {"ticket": "42"})
            >>> ds.tags.list()["stable"]["metadata"]
            {'ticket': '42'}
        """
        self._refs.annotate_tag(tag, metadata)

    def _reference(self, version: VersionLike | None) -> Reference:
        if version is None:
            return OnBranch(self._refs.snapshot.branch, self._refs.snapshot.version)
        # A number is a version of the main line, wherever the tag is created.
        return OnBranch(None, version) if isinstance(version, int) else to_reference(version)


class Branches:
    """The branches of a table."""

    def __init__(self, table: Table) -> None:
        self._refs = table.refs

    def __repr__(self) -> str:
        return f"Branches({', '.join(self.list())})"

    def _repr_html_(self) -> str:
        rows = [
            (n, b["parent_branch"] or "main", b["parent_version"]) for n, b in self.list().items()
        ]
        return table_html(("branch", "from branch", "from version"), rows)

    def list(self) -> dict[str, Branch]:
        """Return all branches by name.

        Returns:
            The version that each branch was forked from.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> ds.branches.list()["trial"]["parent_version"]
            1
        """
        return {name: _branch(each) for name, each in self._refs.branches().items()}

    def list_ordered(self, order: str | None = None) -> builtins.list[tuple[str, Branch]]:
        """Return all branches by the version they forked from.

        Args:
            order: `desc`, the default, for the newest first, or `asc`.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> [name for name, branch in ds.branches.list_ordered()]
            ['trial']
        """
        return _sort(self.list(), lambda branch: branch["parent_version"], order)

    @os_errors()
    def delete(self, branch: str) -> None:
        """Delete a branch and its files.

        Args:
            branch: The name of the branch.

        Raises:
            RefNotFoundError: The table has no such branch.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> ds.branches.delete("trial")
            >>> ds.branches.list()
            {}
        """
        self._refs.remove_branch(branch)

    def replace_metadata(self, branch: str, metadata: dict[str, str]) -> None:
        """Replace the metadata of a branch.

        Args:
            branch: The name of the branch.
            metadata: The new keys and values.

        Raises:
            RefNotFoundError: The table has no such branch.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> ds.branches.replace_metadata("trial", {"owner": "ada"})
            >>> ds.branches.list()["trial"]["metadata"]
            {'owner': 'ada'}
        """
        self._refs.annotate_branch(branch, metadata)


def _sort(
    refs: dict[str, T], key: Callable[[T], int], order: str | None
) -> builtins.list[tuple[str, T]]:
    if order not in (None, "asc", "desc"):
        raise InvalidRequestError(f"order must be 'asc' or 'desc', not {order!r}")
    by_name = sorted(refs.items())
    return sorted(by_name, key=lambda item: key(item[1]), reverse=order != "asc")


def _tag(document: TagDocument) -> Tag:
    return Tag(
        branch=document.branch,
        version=document.version,
        manifest_size=document.manifest_size,
        created_at=_time(document.created_at),
        updated_at=_time(document.updated_at),
        metadata=dict(document.metadata),
    )


def _branch(document: BranchDocument) -> Branch:
    return Branch(
        parent_branch=document.parent_branch,
        branch_identifier=[(fork.version, fork.uuid) for fork in document.lineage or ()],
        parent_version=document.parent_version,
        create_at=document.create_at,
        manifest_size=document.manifest_size,
        metadata=dict(document.metadata),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else tag_time(text)
