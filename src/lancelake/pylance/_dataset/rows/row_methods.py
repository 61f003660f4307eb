"""Dataset methods that delete, update and merge rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal, TypedDict

import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.rows.merge import MergeInsertBuilder
from lancelake.pylance._dataset.rows.merge_options import ensure_same_version
from lancelake.pylance._dataset.state.guarded import GuardedDataset
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
        done = delete(self._snapshot, predicate, retries=retries, choices=self._choices)
        self._snapshot = done.snapshot
        return DeleteResult(num_deleted_rows=done.rows)

    def truncate_table(self) -> None:
        """Delete all rows.

        Examples:
            >>> ds.truncate_table()
            >>> ds.count_rows()
            0
        """
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
        return MergeInsertBuilder(self, on)


def _retries(most: int, timeout: timedelta) -> Retries:
    return Retries(most=most, timeout_s=timeout.total_seconds())


def _rewriting(mode: str) -> Rewriting:
    try:
        return Rewriting(mode)
    except ValueError as error:
        known = ", ".join(known.value for known in Rewriting)
        raise InvalidRequestError(f"invalid write_mode {mode!r}; valid modes: {known}") from error
