"""Dataset methods that list versions and check them out."""

from __future__ import annotations

from typing import Self

from lancelake.commit.versions import latest_version
from lancelake.pylance._dataset.arguments.reference import VersionLike, reference
from lancelake.pylance._dataset.state.dataset_state import DatasetState
from lancelake.pylance._dataset.state.notebook import NotebookList
from lancelake.pylance._dataset.versions.version_values import (
    VERSION_HEADER,
    Version,
    version_cells,
    version_of,
)
from lancelake.table.history import facts_of, history_in_numbers
from lancelake.table.open import Latest, open_snapshot


class DatasetVersions(DatasetState):
    """Methods that list versions and check them out."""

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
        return latest_version(self._snapshot.location).version

    def versions(self) -> list[Version]:
        """Return all versions, oldest first.

        Returns:
            One entry per version, with its number, time and metadata.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> [each["version"] for each in ds.versions()]
            [1, 2]
        """
        found = map(version_of, history_in_numbers(self._snapshot.location))
        return NotebookList(found, VERSION_HEADER, version_cells, is_newest_last=True)

    def get_version(self) -> Version:
        """Return the open version, in the form of `versions`.

        Returns:
            The number, the time and the metadata of the version.

        Examples:
            >>> ds.get_version()["version"]
            1
        """
        return version_of(facts_of(self._snapshot))

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
        place = self._snapshot
        found = open_snapshot(place.location, reference(version), main=place.main_location)
        return self._of(found, self._default_scan_options, self._uri, lock=self._lock)

    def checkout_latest(self) -> None:
        """Move this object to the newest version.

        Examples:
            >>> other = lance.dataset("people.lance")
            >>> ds.insert(ds.head(1))
            >>> other.checkout_latest()
            >>> other.version
            2
        """
        self._snapshot = open_snapshot(self._snapshot.location, Latest())
