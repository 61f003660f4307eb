"""Dataset methods that delete, update and merge rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal, TypedDict

import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.guarded import GuardedDataset
from lancelake.pylance._dataset.merge import MergeInsertBuilder, ensure_same_version
from lancelake.pylance._dataset.os_errors import names_dataset, os_errors
from lancelake.table.conflict_retry import Retries
from lancelake.table.rows.delete import delete
from lancelake.table.rows.update import Rewriting, update

_TIMEOUT = timedelta(seconds=30)


class DeleteResult(TypedDict):
    """Result of `delete`."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """Result of `update`."""

    num_rows_updated: int


class DatasetRows(GuardedDataset):
    """Methods that delete, update and merge rows."""

    _snapshot: Snapshot

    @os_errors()
    @names_dataset
    def delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _TIMEOUT,
    ) -> DeleteResult:
        """Delete the rows that match a predicate, and move to the new version."""
        retries = _retries(conflict_retries, retry_timeout)
        done = delete(self._snapshot, predicate, retries=retries, choices=self._choices)
        self._snapshot = done.snapshot
        return DeleteResult(num_deleted_rows=done.rows)

    def truncate_table(self) -> None:
        """Delete all rows."""
        self._snapshot = delete(self._snapshot, None, choices=self._choices).snapshot

    @names_dataset
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

        Either the changed rows are rewritten, or the set columns of their fragments; `auto` chooses
        the option that writes fewer bytes. New files have the table's `data_storage_version`.
        """
        ensure_same_version(self._snapshot, data_storage_version)
        done = update(
            self._snapshot,
            updates,
            where,
            rewriting=_rewriting(write_mode),
            retries=_retries(conflict_retries, retry_timeout),
            choices=self._choices,
        )
        self._snapshot = done.snapshot
        return UpdateResult(num_rows_updated=done.rows)

    @names_dataset
    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Start a merge by key; without `on`, by the primary key of the schema."""
        return MergeInsertBuilder(self, on)


def _retries(most: int, timeout: timedelta) -> Retries:
    return Retries(most=most, timeout_s=timeout.total_seconds())


def _rewriting(mode: str) -> Rewriting:
    try:
        return Rewriting(mode)
    except ValueError as error:
        known = ", ".join(known.value for known in Rewriting)
        raise InvalidRequestError(f"invalid write_mode {mode!r}; valid modes: {known}") from error
