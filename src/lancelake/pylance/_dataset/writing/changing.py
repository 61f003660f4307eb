"""Dataset methods that write rows, restore versions, commit transactions and drop tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack

from lancelake.commit.locked import CommitLock
from lancelake.errors import naming
from lancelake.pylance._dataset.arguments.offered_options import ensure_offered
from lancelake.pylance._dataset.arguments.options import (
    BatchCommitOptions,
    InsertMode,
    InsertOptions,
    LegacyOptions,
)
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.arguments.uris import uri_of
from lancelake.pylance._dataset.state.dataset_state import DatasetState
from lancelake.pylance._dataset.state.guarded import lock_of
from lancelake.pylance._dataset.writing.committing import (
    COMMIT_TIMEOUT,
    commit_choices,
    committed,
    entry_of,
    merged_appends,
    target_of,
)
from lancelake.pylance._dataset.writing.external_blobs import rows_with_blobs
from lancelake.pylance._dataset.writing.lance_operation import LanceOperation
from lancelake.pylance._dataset.writing.transaction import Transaction, from_transaction
from lancelake.pylance._dataset.writing.write import write_options, write_rows
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.storage.location import Location
from lancelake.table import restore
from lancelake.table.drop import drop_table
from lancelake.table.migrate import migrate_manifest_names
from lancelake.table.open import AtVersion, open_snapshot

Made = TypeVar("Made")


class BulkCommitResult(TypedDict, Generic[Made]):
    """Result of `commit_batch`."""

    dataset: Made
    merged: Transaction


class DatasetChanges(DatasetState):
    """Methods that write rows, restore versions, commit transactions and drop tables."""

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
