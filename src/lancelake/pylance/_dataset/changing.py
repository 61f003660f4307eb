"""Dataset methods that commit changes, and create refs and clones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack

from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError, naming
from lancelake.format.frozen import FrozenMap
from lancelake.pylance._dataset.base_path import DatasetBasePath, from_base_path, to_base_path
from lancelake.pylance._dataset.committing import (
    COMMIT_TIMEOUT,
    commit_choices,
    committed,
    entry_of,
    merged_appends,
    target_of,
)
from lancelake.pylance._dataset.external_blobs import rows_with_blobs
from lancelake.pylance._dataset.guarded import GuardedDataset, lock_of
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.options import (
    BatchCommitOptions,
    InsertMode,
    InsertOptions,
    LegacyOptions,
)
from lancelake.pylance._dataset.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.reference import VersionLike
from lancelake.pylance._dataset.reference import reference as to_reference
from lancelake.pylance._dataset.transaction import Transaction, from_transaction
from lancelake.pylance._dataset.uris import branch_uri, uri_of
from lancelake.pylance._dataset.writing import ensure_offered, write_options, write_rows
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.storage.location import Location
from lancelake.table import bases, clone, config, restore
from lancelake.table.drop import drop_table
from lancelake.table.migrate import migrate_manifest_names
from lancelake.table.open import AtVersion, open_snapshot
from lancelake.table.publish import CommitChoices

Made = TypeVar("Made")


class BulkCommitResult(TypedDict, Generic[Made]):
    """Result of `commit_batch`."""

    dataset: Made
    merged: Transaction


class DatasetChanges(GuardedDataset, ABC):
    """Methods that create new versions, refs and clones."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @classmethod
    @abstractmethod
    def _of(
        cls,
        snapshot: Snapshot,
        default_scan_options: dict[str, Any] | None,
        uri: str | None = None,
        *,
        lock: CommitLock | None = None,
    ) -> Self: ...

    @names_dataset
    def insert(
        self, data: Any, *, mode: InsertMode = "append", **kwargs: Unpack[InsertOptions]
    ) -> None:
        """Write rows and move this object to the new version.

        Args:
            data: Rows, as in `write_dataset`.
            mode: `append` adds the rows, `overwrite` replaces all rows.
            **kwargs: Options of `write_dataset`.

        Raises:
            SchemaMismatchError: The rows do not fit the columns of the table.

        Examples:
            >>> ds.insert([{"id": 4, "name": "di", "score": 4.5}])
            >>> ds.count_rows()
            4
        """
        given: dict[str, Any] = {**kwargs}
        lock = lock_of(self, given.pop("commit_lock", None))
        schema = given.pop("schema", None)
        options = write_options(mode, commit_lock=lock, **given)
        mode_of_blobs = given.get("external_blob_mode", "reference")
        rows = rows_with_blobs(data, schema, mode_of_blobs, self._snapshot.location.storage_options)
        self._snapshot = write_rows(rows, self._snapshot, schema=schema, options=options)

    def restore(self) -> None:
        """Make this version the newest.

        Versions in between stay in the history.

        Examples:
            >>> ds.truncate_table()
            >>> old = ds.checkout_version(1)
            >>> old.restore()
            >>> old.version, old.count_rows()
            (3, 3)
        """
        self._snapshot = restore.restore(self._snapshot, self._choices)

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

    def migrate_manifest_paths_v2(self) -> None:
        """Rename manifests to the current scheme.

        No writer may be active: those of the old scheme do not find renamed manifests.

        Examples:
            >>> old = lance.write_dataset({"id": [1]}, "old.lance", enable_v2_manifest_paths=False)
            >>> old.migrate_manifest_paths_v2()
            >>> lance.dataset("old.lance").count_rows()
            1
        """
        migrate_manifest_names(self._snapshot.location)
        self._snapshot = open_snapshot(self._snapshot.location, AtVersion(self._snapshot.version))

    @staticmethod
    def drop(
        base_uri: str | Path,
        storage_options: dict[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Drop a table.

        Args:
            base_uri: Path or URI of the table.
            storage_options: Options and credentials of the object store.
            ignore_not_found: Do nothing if there is no table.

        Raises:
            TableNotFoundError: There is no table at `base_uri`.

        Examples:
            >>> lance.LanceDataset.drop("people.lance")
            >>> lance.LanceDataset.drop("people.lance", ignore_not_found=True)
        """
        location = Location.parse(base_uri, storage_options)
        drop_table(location, ignore_not_found=bool(ignore_not_found))

    @classmethod
    def commit(
        cls,
        base_uri: str | Path | OpenedDataset,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
        **rest: Unpack[LegacyOptions],
    ) -> Self:
        """Commit a change whose files are already written.

        The table is that of `base_uri`; a namespace has no part in the commit.

        Args:
            base_uri: Path or URI of the table, or an open dataset.
            operation: What the commit does, or a whole transaction.
            read_version: The version that the operation is based on; only an Overwrite and a
                Restore do not need it.
            commit_lock: Context manager that the commit holds.
            storage_options: Options and credentials of the object store.
            enable_v2_manifest_paths: Name the manifests of a new table so that the newest one is
                listed first.
            detached: Commit a version that is not part of the history.
            max_retries: Attempts to commit against other writers.
            commit_message: Message of the version.
            enable_stable_row_ids: Let rows of a new table keep their ids when they are moved.
            namespace_client: Accepted; the commit does not use it.
            table_id: Accepted; the commit does not use it.
            commit_timeout: Time limit of all attempts; None for no limit.
            **rest: Options that tune official Lance.

        Returns:
            The table at the new version.

        Raises:
            ConflictError: A concurrent commit conflicts with the operation.
            ContentionError: Every attempt lost against another writer.

        Examples:
            >>> from lancelake.pylance.fragment import write_fragments
            >>> fragments = write_fragments(ds.head(2), ds)
            >>> append = lance.LanceOperation.Append(fragments)
            >>> lance.LanceDataset.commit(ds, append, read_version=ds.version).count_rows()
            5
        """
        ensure_offered(
            {
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
                **rest,
            }
        )
        location, opened = target_of(base_uri, storage_options)
        choices = commit_choices(
            message=commit_message,
            lock=lock_of(base_uri, commit_lock),
            is_detached=detached,
            max_retries=max_retries,
            timeout=commit_timeout,
            v2_manifest_paths=enable_v2_manifest_paths,
            stable_row_ids=enable_stable_row_ids,
        )
        with naming(location.uri):
            entry = entry_of(operation, read_version, opened, choices)
            with os_errors():
                made = committed(location, opened, entry, choices)
        return cls._of(made, None, uri_of(base_uri), lock=choices.lock)

    @classmethod
    def commit_batch(
        cls,
        dest: str | Path | OpenedDataset,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
        **rest: Unpack[BatchCommitOptions],
    ) -> BulkCommitResult[Self]:
        """Commit several appends as one version.

        Args:
            dest: Path or URI of the table, or an open dataset.
            transactions: The appends.
            commit_lock: Context manager that the commit holds.
            storage_options: Options and credentials of the object store.
            enable_v2_manifest_paths: Accepted for compatibility.
            detached: Commit a version that is not part of the history.
            max_retries: Attempts to commit against other writers.
            commit_timeout: Time limit of all attempts; None for no limit.
            **rest: Options that tune official Lance.

        Returns:
            The table at the new version (`dataset`), and the transaction (`merged`).

        Raises:
            UnsupportedError: A transaction is not an append.

        Examples:
            >>> from lancelake.pylance.fragment import write_fragments
            >>> parts = [write_fragments(ds.head(n), ds, return_transaction=True) for n in (1, 2)]
            >>> lance.LanceDataset.commit_batch(ds, parts)["dataset"].count_rows()
            6
        """
        ensure_offered({"base_store_params": base_store_params, **rest})
        location, opened = target_of(dest, storage_options)
        choices = commit_choices(
            lock=lock_of(dest, commit_lock),
            is_detached=detached,
            max_retries=max_retries,
            timeout=commit_timeout,
            v2_manifest_paths=enable_v2_manifest_paths,
        )
        with naming(location.uri), os_errors():
            merged = merged_appends(transactions, choices)
            found = committed(location, opened, merged, choices)
        made = cls._of(found, None, uri_of(dest), lock=choices.lock)
        return BulkCommitResult(dataset=made, merged=from_transaction(merged))

    def _at(self, version: VersionLike | None) -> Snapshot:
        if version is None:
            return self._snapshot
        place = self._snapshot
        return open_snapshot(place.location, to_reference(version), main=place.main_location)
