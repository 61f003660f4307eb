"""Properties and transactions of the open version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version
from lancelake.format.arrow_schema import public_schema
from lancelake.pylance._dataset.description.stats import LanceStats
from lancelake.pylance._dataset.versions.refs import Branches, Tags
from lancelake.pylance._dataset.writing.transaction import Transaction, from_transaction
from lancelake.pylance.schema import LanceSchema
from lancelake.table.history import history
from lancelake.table.migrate import lacks_facts


def manifest_needs_migration(dataset: DatasetFacts) -> bool:
    """Return whether the manifest of an early release lacks facts that later ones record.

    Args:
        dataset: The table, at a version.

    Returns:
        Whether numbers of rows, or fragments of indices, are missing.

    Examples:
        >>> from lancelake.pylance.lance import manifest_needs_migration
        >>> manifest_needs_migration(ds)
        False
    """
    return lacks_facts(dataset._snapshot.state)


class DatasetFacts:
    """Properties of the open version, and the transactions that led to it."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the columns that the default scan options add.

        Examples:
            >>> ds.schema.names
            ['id', 'name', 'score']
        """
        if self._default_scan_options:
            dataset: Any = self
            schema: pa.Schema = dataset.scanner().projected_schema
            return schema
        return public_schema(self._snapshot.manifest.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """The schema with field ids.

        Examples:
            >>> [field.id() for field in ds.lance_schema.fields()]
            [0, 1, 2]
        """
        return LanceSchema(self._snapshot.manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """Format version of the table's data files.

        Examples:
            >>> made = lance.write_dataset({"id": [1]}, "new.lance", data_storage_version="2.1")
            >>> made.data_storage_version
            '2.1'
        """
        return self._snapshot.manifest.data_version.value

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they are moved.

        Examples:
            >>> ds.has_stable_row_ids
            True
        """
        return self._snapshot.manifest.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Highest field id in use.

        Examples:
            >>> ds.max_field_id
            2
        """
        return self._snapshot.manifest.schema.max_field_id

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the table.

        Examples:
            >>> ds.update_metadata({"owner": "ada"}) == ds.metadata
            True
        """
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema.

        Examples:
            >>> ds.schema_metadata
            {}
        """
        found = self._snapshot.manifest.schema.metadata
        return {key: value.decode() for key, value in found.items()}

    def config(self) -> dict[str, str]:
        """Return the settings stored with the table.

        Returns:
            Values by key.

        Examples:
            >>> config = ds.update_config({"team": "search"})
            >>> ds.config()["team"]
            'search'
        """
        return dict(self._snapshot.manifest.config)

    @property
    def tags(self) -> Tags:
        """The table's tags.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags
            Tags(stable=1)
        """
        return Tags(self._snapshot)

    @property
    def branches(self) -> Branches:
        """The table's branches.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> ds.branches
            Branches(trial)
        """
        return Branches(self._snapshot)

    @property
    def stats(self) -> LanceStats:
        """Statistics of the table.

        Examples:
            >>> ds.stats.dataset_stats()["num_fragments"]
            1
        """
        return LanceStats(self._snapshot)

    @property
    def partition_expression(self) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("partitioning not yet supported")

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction of a version.

        Args:
            version: The number of the version.

        Returns:
            The transaction; None if the version recorded none.

        Raises:
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> type(ds.read_transaction(1).operation).__name__
            'Overwrite'
        """
        location = self._snapshot.location
        found = Snapshot.load(location, find_version(location, version)).transaction
        return None if found is None else from_transaction(found)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions of the latest versions up to this one, newest first.

        Args:
            recent_transactions: Versions to read, at most.

        Returns:
            One transaction per version, None where none was recorded.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> [type(each.operation).__name__ for each in ds.get_transactions()]
            ['Delete', 'Overwrite']
        """
        out: list[Transaction | None] = []
        for snapshot in history(self._snapshot.location, newest_first=True):
            if snapshot.version > self._snapshot.version:
                continue
            if len(out) == recent_transactions:
                break
            found = snapshot.transaction
            out.append(None if found is None else from_transaction(found))
        return out
