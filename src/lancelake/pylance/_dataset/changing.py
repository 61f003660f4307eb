"""Methods that commit: inserts, changes of rows, transactions, drops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack

import pyarrow.compute as pc

from lancelake import errors
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values import writes
from lancelake.core.values.metadata import Append, Location, Overwrite, Restore, Snapshot
from lancelake.core.values.metadata import Transaction as Entry
from lancelake.core.values.versions import AtVersion, Latest
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.merge import MergeInsertBuilder
from lancelake.pylance._dataset.merge_options import ensure_same_version
from lancelake.pylance._dataset.state import DatasetState, commit_lock_of, lock_of
from lancelake.pylance._dataset.transactions import (
    Transaction,
    from_transaction,
    to_operation,
    to_transaction,
)
from lancelake.pylance._dataset.write import rows_with_blobs, write_options, write_rows
from lancelake.pylance._values.opened import OpenedDataset, describes_as

COMMIT_TIMEOUT = timedelta(minutes=30)


def commit_choices(
    *,
    message: str | None = None,
    lock: writes.CommitLock | None,
    is_detached: bool | None,
    max_retries: int,
    timeout: timedelta | None,
    v2_manifest_paths: bool | None,
    stable_row_ids: bool | None = None,
) -> writes.CommitChoices:
    """Parse the options of a commit."""
    if max_retries < 0:
        raise errors.InvalidRequestError(f"max_retries must be at least 0, not {max_retries}")
    return writes.CommitChoices(
        message=message,
        max_retries=max_retries,
        is_detached=bool(is_detached),
        naming=writes.ManifestNaming.V1 if v2_manifest_paths is False else writes.ManifestNaming.V2,
        enable_stable_row_ids=stable_row_ids or None,
        timeout_s=_seconds(timeout),
        lock=commit_lock_of(lock),
    )


def target_of(
    where: str | Path | OpenedDataset, storage_options: dict[str, str] | None
) -> tuple[Location, Snapshot | None]:
    """Return the location to commit to, and the open version, if any."""
    opened: Snapshot | None = getattr(where, "_snapshot", None)
    if opened is not None:
        return opened.location, opened
    if not isinstance(where, str | Path):
        raise TypeError(f"base_uri must be str, Path, or LanceDataset, got {type(where)}")
    return Location.parse(where, storage_options), None


def entry_of(
    operation: LanceOperation.BaseOperation | Transaction,
    read_version: int | None,
    opened: Snapshot | None,
    choices: writes.CommitChoices,
) -> Entry:
    """Return the transaction to record for an operation, or for an existing transaction.

    An Overwrite or a Restore without `read_version` replaces the open version.
    """
    if isinstance(operation, Transaction):
        entry = to_transaction(operation)
        return replace(entry, properties=writes.with_message(entry.properties, choices.message))
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(
            "operation must be a LanceOperation.BaseOperation or Transaction, "
            f"got {type(operation)}"
        )
    change = to_operation(operation)
    if read_version is None and not isinstance(change, Overwrite | Restore):
        raise errors.InvalidRequestError(
            "read_version is required for all operations except Overwrite and Restore"
        )
    if read_version is None and opened is not None:
        read_version = opened.version
    return writes.new_transaction(change, read_version or 0, choices)


def merge_appends(transactions: Sequence[Transaction], choices: writes.CommitChoices) -> Entry:
    """Return one append with the fragments of all transactions."""
    if not transactions:
        raise errors.InvalidRequestError("No transactions to commit")
    entries = [to_transaction(transaction) for transaction in transactions]
    appends = [entry.operation for entry in entries if isinstance(entry.operation, Append)]
    if len(appends) != len(entries):
        raise errors.UnsupportedError("Only append transactions are supported in batch commits")
    fragments = tuple(fragment for append in appends for fragment in append.fragments)
    first = min(entry.read_version for entry in entries)
    return writes.new_transaction(Append(fragments=fragments), first, choices)


def commit_entry(
    location: Location,
    opened: Snapshot | None,
    entry: Entry,
    choices: writes.CommitChoices,
    *,
    is_made_before: bool = False,
) -> Snapshot:
    """Commit a transaction, which the caller may have made before; an overwrite also creates."""
    base, place = opened, TablePlace(location)
    if base is None or (entry.read_version and base.version != entry.read_version):
        try:
            wanted = AtVersion(entry.read_version) if entry.read_version else Latest()
            base = place.open(wanted).snapshot
        except errors.TableNotFoundError as error:
            if not isinstance(entry.operation, Overwrite):
                problem = "The dataset must already exist unless the operation is Overwrite"
                raise errors.TableNotFoundError(problem, table=location.uri) from error
            place.ensure_committable(None, entry.operation)
            return place.publish_first(entry, choices)
    place.ensure_committable(base, entry.operation)
    if isinstance(entry.operation, Overwrite):
        writes.ensure_row_ids_stay(base, choices)
    return Table(base).publish(entry, replace(choices, may_have_landed=is_made_before))


def _seconds(timeout: timedelta | None) -> float | None:
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta):
        raise TypeError(f"commit_timeout must be a timedelta, got {type(timeout)}")
    if timeout <= timedelta(0):
        problem = f"commit_timeout must be non-zero and positive, not {timeout}"
        raise errors.InvalidRequestOSError(problem, action="Pass None to wait indefinitely.")
    return timeout.total_seconds()


Made = TypeVar("Made")


class BulkCommitResult(TypedDict, Generic[Made]):
    """Result of `commit_batch`."""

    dataset: Made
    merged: Transaction


_TIMEOUT = timedelta(seconds=30)


class DeleteResult(TypedDict):
    """Result of `delete`."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """Result of `update`."""

    num_rows_updated: int


def _retries(most: int, timeout: timedelta) -> writes.Retries:
    return writes.Retries(most=most, timeout_s=timeout.total_seconds())


def _rewriting(mode: str) -> writes.Rewriting:
    try:
        return writes.Rewriting(mode)
    except ValueError as error:
        modes = ", ".join(each.value for each in writes.Rewriting)
        raise errors.InvalidRequestError(
            f"invalid write_mode {mode!r}; valid modes: {modes}"
        ) from error


class DatasetChanges(DatasetState):
    """Methods that write and change rows, restore versions, commit transactions and drop tables."""

    def insert(
        self,
        data: Any,
        *,
        mode: arguments.InsertMode = "append",
        **kwargs: Unpack[arguments.InsertOptions],
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
        rest: dict[str, Any] = {**kwargs}
        lock = lock_of(self, rest.pop("commit_lock", None))
        schema = rest.pop("schema", None)
        options = write_options(mode, commit_lock=lock, **rest)
        mode_of_blobs = rest.get("external_blob_mode", "reference")
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
        self._snapshot = self._table.restore(self._choices)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename manifests to the current scheme.

        No writer may be active: those of the old scheme do not find renamed manifests.

        Examples:
            >>> old = lance.write_dataset({"id": [1]}, "old.lance", enable_v2_manifest_paths=False)
            >>> old.migrate_manifest_paths_v2()
            >>> lance.dataset("old.lance").count_rows()
            1
        """
        place = TablePlace(self._snapshot.location)
        place.migrate_manifest_names()
        self._snapshot = place.open(AtVersion(self._snapshot.version)).snapshot

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
        place = TablePlace(Location.parse(base_uri, storage_options))
        place.drop(ignore_not_found=bool(ignore_not_found))

    @classmethod
    def commit(
        cls,
        base_uri: str | Path | OpenedDataset,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: writes.CommitLock | None = None,
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
        **rest: Unpack[arguments.LegacyOptions],
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
        arguments.ensure_offered(
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
        entry = entry_of(operation, read_version, opened, choices)
        with arguments.os_errors():
            is_made = isinstance(operation, Transaction)
            snapshot = commit_entry(location, opened, entry, choices, is_made_before=is_made)
        return cls._of(snapshot, None, arguments.uri_of(base_uri), lock=choices.lock)

    @classmethod
    @describes_as(commit)
    def commit_batch(
        cls,
        dest: str | Path | OpenedDataset,
        transactions: Sequence[Transaction],
        commit_lock: writes.CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
        **rest: Unpack[arguments.BatchCommitOptions],
    ) -> BulkCommitResult[Self]:
        """Commit several appends as one version.

        Args:
            dest: Path or URI of the table, or an open dataset.
            transactions: The appends.
            enable_v2_manifest_paths: Accepted for compatibility.
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
        arguments.ensure_offered({"base_store_params": base_store_params, **rest})
        location, opened = target_of(dest, storage_options)
        choices = commit_choices(
            lock=lock_of(dest, commit_lock),
            is_detached=detached,
            max_retries=max_retries,
            timeout=commit_timeout,
            v2_manifest_paths=enable_v2_manifest_paths,
        )
        with arguments.os_errors():
            merged = merge_appends(transactions, choices)
            snapshot = commit_entry(location, opened, merged, choices)
        dataset = cls._of(snapshot, None, arguments.uri_of(dest), lock=choices.lock)
        return BulkCommitResult(dataset=dataset, merged=from_transaction(merged))

    @arguments.os_errors()
    def delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _TIMEOUT,
    ) -> DeleteResult:
        """Delete the rows that match a predicate, and move to the new version.

        Args:
            predicate: SQL, or an expression of `pyarrow.compute`.
            conflict_retries: Retries after conflicts with concurrent commits.
            retry_timeout: Time limit of the retries.

        Returns:
            The number of deleted rows.

        Raises:
            InvalidExpressionError: The predicate cannot be parsed or bound.
            RetryableConflictError: Every retry conflicted.

        Examples:
            >>> ds.delete("score < 2")
            {'num_deleted_rows': 1}
            >>> ds.count_rows()
            2
        """
        retries = _retries(conflict_retries, retry_timeout)
        done = self._table.delete(predicate, retries=retries, choices=self._choices)
        self._snapshot = done.snapshot
        return DeleteResult(num_deleted_rows=done.rows)

    def truncate_table(self) -> None:
        """Delete all rows.

        Examples:
            >>> ds.truncate_table()
            >>> ds.count_rows()
            0
        """
        self._snapshot = self._table.delete(None, choices=self._choices).snapshot

    def update(
        self,
        updates: dict[str, str],
        where: str | pc.Expression | None = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _TIMEOUT,
        data_storage_version: str | None = None,
        *,
        write_mode: Literal["auto", "rewrite_rows", "rewrite_columns"] = "auto",
    ) -> UpdateResult:
        """Set columns to the values of SQL expressions, in the rows that match `where`.

        Args:
            updates: SQL expressions by column.
            where: SQL, or an expression of `pyarrow.compute`; by default all rows.
            conflict_retries: Retries after conflicts with concurrent commits.
            retry_timeout: Time limit of the retries.
            data_storage_version: Version of the new files, which must be the table's.
            write_mode: `rewrite_rows` moves changed rows to new fragments, `rewrite_columns`
                rewrites the set columns of their fragments, and `auto` chooses the option that
                writes fewer bytes.

        Returns:
            The number of updated rows.

        Raises:
            InvalidExpressionError: An expression cannot be parsed or bound.
            RetryableConflictError: Every retry conflicted.

        Examples:
            >>> ds.update({"score": "score * 10"}, where="name = 'bob'")
            {'num_rows_updated': 1}
            >>> ds.to_table(columns=["score"], filter="id = 2").to_pylist()
            [{'score': 25.0}]
        """
        ensure_same_version(self._snapshot, data_storage_version)
        done = self._table.update(
            updates,
            where,
            rewriting=_rewriting(write_mode),
            retries=_retries(conflict_retries, retry_timeout),
            choices=self._choices,
        )
        self._snapshot = done.snapshot
        return UpdateResult(num_rows_updated=done.rows)

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Start a merge by key.

        Args:
            on: Key columns; by default the primary key of the schema.

        Returns:
            A builder: add clauses, then call `execute`.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidRequestError: No key is given, and the schema has none.

        Examples:
            >>> rows = {"id": [3, 4], "name": ["cy", "di"], "score": [9.0, 4.5]}
            >>> merge = ds.merge_insert("id")
            >>> merge = merge.when_matched_update_all().when_not_matched_insert_all()
            >>> merge.execute(rows)
            {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
        """
        dataset: Any = self
        return MergeInsertBuilder(dataset, on)
