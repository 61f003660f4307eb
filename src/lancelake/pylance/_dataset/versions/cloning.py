"""Dataset methods that create branches and clones, and register the base paths of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.format.frozen import FrozenMap
from lancelake.pylance._dataset.arguments.base_path import (
    DatasetBasePath,
    from_base_path,
    to_base_path,
)
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.arguments.reference import VersionLike
from lancelake.pylance._dataset.arguments.reference import reference as to_reference
from lancelake.pylance._dataset.arguments.uris import branch_uri, uri_of
from lancelake.pylance._dataset.state.dataset_state import DatasetState
from lancelake.storage.location import Location
from lancelake.table import bases, clone
from lancelake.table.open import open_snapshot
from lancelake.table.publish import CommitChoices


class DatasetClones(DatasetState):
    """Methods that create branches and clones, and register base paths."""

    @os_errors()
    @names_dataset
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
        made = clone.create_branch(source, branch, self._choices)
        where: Any = self
        uri = branch_uri(where, branch)
        return self._of(made, self._default_scan_options, uri, lock=self._lock)

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
        made = clone.shallow_clone(self._at(reference), target)
        return self._of(made, self._default_scan_options, uri_of(target_path))

    def deep_clone(
        self,
        target_path: str | Path,
        reference: VersionLike,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Copy a version with all its files.

        Args:
            target_path: Path or URI of the new table.
            reference: Version, tag, or branch and version to copy.
            storage_options: Options of the object store of the new table.

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
        made = clone.deep_clone(self._at(reference), target)
        return self._of(made, self._default_scan_options, uri_of(target_path))

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
        self._snapshot = bases.add_bases(self._snapshot, added, choices)
        return self

    def _at(self, version: VersionLike | None) -> Snapshot:
        if version is None:
            return self._snapshot
        place = self._snapshot
        return open_snapshot(place.location, to_reference(version), main=place.main_location)
