"""Dataset methods that change the config and the metadata."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.pylance._dataset.arguments.os_errors import os_errors
from lancelake.pylance._dataset.state.guarded import GuardedDataset
from lancelake.table import config


class DatasetMetadata(GuardedDataset):
    """Methods that change the config, and the metadata of the table, its schema and its fields."""

    _snapshot: Snapshot

    def update_config(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the config.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new config.

        Examples:
            >>> ds.update_config({"team": "search"})["team"]
            'search'
        """
        self._snapshot = config.update_config(
            self._snapshot, values, replace=replace, choices=self._choices
        )
        return dict(self._snapshot.manifest.config)

    def delete_config_keys(self, keys: list[str]) -> None:
        """Remove keys of the config.

        Args:
            keys: The keys; unknown ones are ignored.

        Examples:
            >>> config = ds.update_config({"team": "search"})
            >>> ds.delete_config_keys(["team"])
            >>> "team" in ds.config()
            False
        """
        self._snapshot = config.update_config(
            self._snapshot, dict.fromkeys(keys), choices=self._choices
        )

    def update_metadata(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the table's metadata.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new metadata.

        Examples:
            >>> ds.update_metadata({"owner": "ada"})
            {'owner': 'ada'}
        """
        self._snapshot = config.update_table_metadata(
            self._snapshot, values, replace=replace, choices=self._choices
        )
        return dict(self._snapshot.manifest.table_metadata)

    def update_schema_metadata(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the schema's metadata.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new metadata of the schema.

        Examples:
            >>> ds.update_schema_metadata({"source": "crm"})
            {'source': 'crm'}
        """
        self._snapshot = config.update_schema_metadata(
            self._snapshot, values, replace=replace, choices=self._choices
        )
        found = self._snapshot.manifest.schema.metadata
        return {key: value.decode() for key, value in found.items()}

    def replace_schema_metadata(self, new_metadata: dict[str, str]) -> None:
        """Replace the schema's metadata.

        Args:
            new_metadata: The new keys and values.

        Examples:
            >>> ds.replace_schema_metadata({"source": "crm"})
            >>> ds.schema.metadata
            {b'source': b'crm'}
        """
        self.update_schema_metadata(dict(new_metadata), replace=True)

    @os_errors()
    def update_field_metadata(
        self, field_updates: dict[str, dict[str, str | None]], *, replace: bool = False
    ) -> None:
        """Set keys of fields' metadata.

        Args:
            field_updates: Values by key, by column; None removes a key.
            replace: Remove all other keys of these fields.

        Raises:
            InvalidRequestError: The table has no such column.

        Examples:
            >>> ds.update_field_metadata({"score": {"unit": "points"}})
            >>> ds.schema.field("score").metadata
            {b'unit': b'points'}
        """
        self._snapshot = config.update_field_metadata(
            self._snapshot, field_updates, replace=replace, choices=self._choices
        )

    def replace_field_metadata(self, field_name: str, new_metadata: dict[str, str]) -> None:
        """Replace a field's metadata.

        Args:
            field_name: The column.
            new_metadata: The new keys and values.

        Examples:
            >>> ds.replace_field_metadata("score", {"unit": "points"})
            >>> ds.schema.field("score").metadata
            {b'unit': b'points'}
        """
        self.update_field_metadata({field_name: dict(new_metadata)}, replace=True)
