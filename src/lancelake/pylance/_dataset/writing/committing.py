"""Commit changes that users assemble themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    InvalidRequestError,
    InvalidRequestOSError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.format.names import ManifestNaming
from lancelake.format.operations import Append, Overwrite, Restore
from lancelake.format.transaction import Transaction as Entry
from lancelake.pylance._dataset.state.guarded import commit_lock_of
from lancelake.pylance._dataset.writing.lance_operation import LanceOperation
from lancelake.pylance._dataset.writing.operation import to_operation
from lancelake.pylance._dataset.writing.transaction import Transaction, to_transaction
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.storage.location import Location
from lancelake.table.committable import ensure_committable
from lancelake.table.open import AtVersion, Latest, open_snapshot
from lancelake.table.publish import (
    CommitChoices,
    ensure_row_ids_stay,
    new_transaction,
    publish,
    publish_first,
    with_message,
)

COMMIT_TIMEOUT = timedelta(minutes=30)


def commit_choices(
    *,
    message: str | None = None,
    lock: CommitLock | None,
    is_detached: bool | None,
    max_retries: int,
    timeout: timedelta | None,
    v2_manifest_paths: bool | None,
    stable_row_ids: bool | None = None,
) -> CommitChoices:
    """Parse the options of a commit."""
    if max_retries < 0:
        raise InvalidRequestError(f"max_retries must be at least 0, not {max_retries}")
    return CommitChoices(
        message=message,
        max_retries=max_retries,
        is_detached=bool(is_detached),
        naming=ManifestNaming.V1 if v2_manifest_paths is False else ManifestNaming.V2,
        enable_stable_row_ids=bool(stable_row_ids),
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
    choices: CommitChoices,
) -> Entry:
    """Return the transaction to record for an operation, or for an existing transaction.

    An Overwrite or a Restore without `read_version` replaces the open version.
    """
    if isinstance(operation, Transaction):
        entry = to_transaction(operation)
        return replace(entry, properties=with_message(entry.properties, choices.message))
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(
            "operation must be a LanceOperation.BaseOperation or Transaction, "
            f"got {type(operation)}"
        )
    made = to_operation(operation)
    if read_version is None and not isinstance(made, Overwrite | Restore):
        raise InvalidRequestError(
            "read_version is required for all operations except Overwrite and Restore"
        )
    if read_version is None and opened is not None:
        read_version = opened.version
    return new_transaction(made, read_version or 0, choices)


def merged_appends(transactions: Sequence[Transaction], choices: CommitChoices) -> Entry:
    """Return one append with the fragments of all transactions."""
    if not transactions:
        raise InvalidRequestError("No transactions to commit")
    entries = [to_transaction(transaction) for transaction in transactions]
    appends = [entry.operation for entry in entries if isinstance(entry.operation, Append)]
    if len(appends) != len(entries):
        raise UnsupportedError("Only append transactions are supported in batch commits")
    fragments = tuple(fragment for append in appends for fragment in append.fragments)
    first = min(entry.read_version for entry in entries)
    return new_transaction(Append(fragments=fragments), first, choices)


def committed(
    location: Location, opened: Snapshot | None, entry: Entry, choices: CommitChoices
) -> Snapshot:
    """Commit a transaction; an overwrite also creates a table."""
    base = opened
    if base is None or (entry.read_version and base.version != entry.read_version):
        try:
            wanted = AtVersion(entry.read_version) if entry.read_version else Latest()
            base = open_snapshot(location, wanted)
        except TableNotFoundError as error:
            if not isinstance(entry.operation, Overwrite):
                problem = "The dataset must already exist unless the operation is Overwrite"
                raise TableNotFoundError(problem, table=location.uri) from error
            ensure_committable(location, None, entry.operation)
            return publish_first(location, entry, choices)
    ensure_committable(location, base, entry.operation)
    if isinstance(entry.operation, Overwrite):
        ensure_row_ids_stay(base, choices)
    return publish(base, entry, choices)


def _seconds(timeout: timedelta | None) -> float | None:
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta):
        raise TypeError(f"commit_timeout must be a timedelta, got {type(timeout)}")
    if timeout <= timedelta(0):
        problem = f"commit_timeout must be non-zero and positive, not {timeout}"
        raise InvalidRequestOSError(problem, action="Pass None to wait indefinitely.")
    return timeout.total_seconds()
