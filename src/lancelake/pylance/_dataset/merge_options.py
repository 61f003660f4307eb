"""Options of a merge builder: duplicates, new columns, retries and how rows are found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Self

from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.wal import MergedGeneration
from lancelake.core.values.writes import DEFAULT, Duplicates, Retries, version_from_name
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.pylance._values.shards import CompactedSsTable, shard_uuid

_WRITE_MODES = ("auto", "rewrite_rows", "rewrite_columns")


class MergeOptions:
    """Methods of a merge builder that set options."""

    _dataset: OpenedDataset
    _retries: Retries = DEFAULT
    _duplicates = Duplicates.REFUSE
    _adds_columns = False
    _use_index = True
    _generations: tuple[MergedGeneration, ...] = ()

    def last_source_row_wins(self) -> Self:
        """Let the last of several source rows with the same key win, instead of refusing them.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all().last_source_row_wins()
            >>> done = merge.execute({"id": [1, 1], "score": [8.0, 9.0]})
            >>> ds.to_table(["score"], "id = 1").to_pydict()
            {'score': [9.0]}
        """
        self._duplicates = Duplicates.LAST_WINS
        return self

    def with_schema_evolution(self) -> Self:
        """Add columns and struct fields to the table that only the source has.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all().with_schema_evolution()
            >>> done = merge.execute({"id": [1], "city": ["Oslo"]})
            >>> ds.to_table(["city"], "id = 1").to_pydict()
            {'city': ['Oslo']}
        """
        self._adds_columns = True
        return self

    def conflict_retries(self, max_retries: int) -> Self:
        """Set the number of retries after conflicts.

        Args:
            max_retries: Retries, at most.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().conflict_retries(3)
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._retries = replace(self._retries, most=max_retries)
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set the time limit of retries after conflicts.

        Args:
            timeout: The time limit.

        Examples:
            >>> from datetime import timedelta
            >>> merge = ds.merge_insert("id").retry_timeout(timedelta(minutes=5))
            >>> merge.when_matched_delete().execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._retries = replace(self._retries, timeout_s=timeout.total_seconds())
        return self

    def write_mode(self, mode: str) -> Self:
        """Select how rows are written.

        Args:
            mode: `auto` or `rewrite_rows`, which are the same; `rewrite_columns` is not supported.

        Raises:
            InvalidRequestError: The mode is unknown.
            UnsupportedError: The mode is `rewrite_columns`.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().write_mode("auto")
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        if mode not in _WRITE_MODES:
            problem = f"invalid write_mode {mode!r}; valid modes: {', '.join(_WRITE_MODES)}"
            raise InvalidRequestError(problem)
        if mode == "rewrite_columns":
            raise UnsupportedError("write_mode 'rewrite_columns' of a merge is not supported")
        return self

    def data_storage_version(self, version: str) -> Self:
        """Accept the version of the table's data files.

        Args:
            version: The version.

        Raises:
            UnsupportedError: It is not the version of the table.

        Examples:
            >>> merge = ds.merge_insert("id").data_storage_version(ds.data_storage_version)
        """
        ensure_same_version(self._dataset._snapshot, version)
        return self

    def target_bases(self, bases: list[str]) -> Self:
        """Not supported: merges write to the table's own root.

        Args:
            bases: Names of base paths.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("target_bases of a merge is not supported")

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """Not supported: merges write to the table's own root.

        Args:
            include_primary: Whether the root is one of them.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("target_all_bases of a merge is not supported")

    def mark_sstables_as_compacted(self, sstables: Iterable[CompactedSsTable]) -> Self:
        """Record in the same commit that generations of a MemWAL are merged.

        The source must have all their rows, and those of the unmerged generations before them.

        Args:
            sstables: The generations.

        Examples:
            >>> merge = ds.merge_insert("id").mark_sstables_as_compacted([])
        """
        self._generations = tuple(
            MergedGeneration(region_id=shard_uuid(s.shard_id), generation=s.generation)
            for s in sstables
        )
        return self

    def use_index(self, use_index: bool) -> Self:
        """Choose how matching rows are found.

        Args:
            use_index: Use indices of the key columns, or read the columns.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().use_index(False)
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._use_index = use_index
        return self


def ensure_same_version(base: Snapshot, name: str | None) -> None:
    """Raise an error unless a data storage version is that of the table."""
    own = base.manifest.data_version
    if name is not None and version_from_name(name) is not own:
        problem = f"the table's files have version {own.value}, and cannot be mixed with {name}"
        raise UnsupportedError(problem, table=base.location.uri)
