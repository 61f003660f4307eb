"""Dataset methods of table maintenance."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from lancelake.pylance._dataset.arguments.options import NoOptions
from lancelake.pylance._dataset.arguments.os_errors import os_errors
from lancelake.pylance._dataset.writing.write import AutoCleanupConfig, cleanup_config
from lancelake.pylance._values.reprs import call_text
from lancelake.pylance.optimize import Compaction, CompactionMetrics, CompactionOptions, SortKeys
from lancelake.table.auto_cleanup import INTERVAL, OLDER_THAN
from lancelake.table.compact.run import CompactionRun
from lancelake.table.describe.maintenance import optimize_document
from lancelake.table.index.build import IndexRun
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.optimize import OptimizeRun, optimize


class DatasetOptimizer:
    """Methods of `dataset.optimize`."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return call_text(self, self._dataset)

    @os_errors()
    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: list[int] | None = None,
        data_storage_version: str | None = None,
        target_bytes_per_fragment: int | None = None,
        settled_bytes: int | None = None,
        sort_by: SortKeys | None = None,
        z_order_by: str | Sequence[str] | None = None,
        groups_per_commit: int | None = None,
    ) -> CompactionMetrics:
        """Rewrite small fragments, and those with deleted rows, into fuller ones.

        Rewritten rows follow those that are not rewritten. Options that are not given are taken
        from the table's config.

        Args:
            target_rows_per_fragment: Rows per fragment to aim at, 1,048,576 by default.
            max_rows_per_group: Ignored.
            max_bytes_per_file: Bytes per data file, at most.
            materialize_deletions: Rewrite fragments with deleted rows.
            materialize_deletions_threshold: Share of deleted rows from which on a fragment is
                rewritten.
            defer_index_remap: Record where rows moved instead of rewriting indices.
            num_threads: Threads that rewrite fragments.
            batch_size: Rows per batch.
            compaction_mode: `reencode`, or copying of encoded pages.
            binary_copy_read_batch_bytes: Ignored.
            max_source_fragments: Fragments to rewrite, at most.
            max_source_rows: Rows to rewrite, at most.
            max_source_bytes: Bytes to rewrite, at most.
            excluded_fragment_ids: Fragments to leave alone.
            data_storage_version: Version of the new files, which must be the table's.
            target_bytes_per_fragment: Bytes per fragment to aim at, instead of rows.
            settled_bytes: Leave fragments of at least this size alone.
            sort_by: Sort all rows by these columns.
            z_order_by: Cluster all rows along a Z-order curve through these columns.
            groups_per_commit: Commit after this many groups of fragments, instead of once.

        Returns:
            The numbers of fragments and files removed and added.

        Raises:
            RetryableConflictError: Others changed all of the rewritten rows.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> metrics = ds.optimize.compact_files()
            >>> metrics.fragments_removed, metrics.fragments_added
            (2, 1)
        """
        given = CompactionOptions(
            target_rows_per_fragment=target_rows_per_fragment,
            max_rows_per_group=max_rows_per_group,
            max_bytes_per_file=max_bytes_per_file,
            materialize_deletions=materialize_deletions,
            materialize_deletions_threshold=materialize_deletions_threshold,
            defer_index_remap=defer_index_remap,
            num_threads=num_threads,
            batch_size=batch_size,
            compaction_mode=compaction_mode,
            binary_copy_read_batch_bytes=binary_copy_read_batch_bytes,
            max_source_fragments=max_source_fragments,
            max_source_rows=max_source_rows,
            max_source_bytes=max_source_bytes,
            excluded_fragment_ids=excluded_fragment_ids,
            data_storage_version=data_storage_version,
            target_bytes_per_fragment=target_bytes_per_fragment,
            settled_bytes=settled_bytes,
            sort_by=sort_by,
            z_order_by=z_order_by,
        )
        run = CompactionRun(groups_per_commit=groups_per_commit)
        return Compaction.execute(self._dataset, given, run)

    @os_errors()
    def all(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Compact, refresh indices and clean up, if worthwhile.

        Thresholds are read from the table's config. Without pending work no version is created, and
        concurrent calls are safe: work done by one is skipped by the others.

        Args:
            dry_run: Change nothing.

        Returns:
            What was done, or would be: `compaction`, `indices` and `cleanup`; the reasons for
            `skipped` steps; and a `conflict` with another writer that leaves the work to the
            next call.

        Examples:
            >>> for _ in range(8):
            ...     ds.insert(ds.head(1))
            >>> ds.optimize.all()["compaction"]["fragments_removed"]
            9
            >>> ds.optimize.all()["compaction"] is None
            True
        """
        run = OptimizeRun(choices=self._dataset._choices)
        summary = optimize(self._dataset._snapshot, dry_run=dry_run, run=run)
        self._dataset._snapshot = summary.snapshot
        return optimize_document(summary)

    def enable_auto_cleanup(
        self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Unpack[NoOptions]
    ) -> None:
        """Clean up old versions automatically, after a number of commits.

        Args:
            auto_cleanup_config: `interval`, the number of commits, and `older_than_seconds`.
            **kwargs: None are accepted.

        Examples:
            >>> ds.optimize.enable_auto_cleanup({"interval": 10, "older_than_seconds": 86400})
            >>> ds.config()["lance.auto_cleanup.interval"]
            '10'
        """
        _ensure_none(kwargs)
        self._dataset.update_config(dict(cleanup_config(auto_cleanup_config)))

    def disable_auto_cleanup(self, **kwargs: Unpack[NoOptions]) -> None:
        """Do not clean up old versions automatically.

        Args:
            **kwargs: None are accepted.

        Examples:
            >>> ds.optimize.enable_auto_cleanup({"interval": 10})
            >>> ds.optimize.disable_auto_cleanup()
            >>> ds.config()
            {}
        """
        _ensure_none(kwargs)
        self._dataset.delete_config_keys([INTERVAL, OLDER_THAN])

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: list[str] | None = None,
        retrain: bool = False,
    ) -> None:
        """Add unindexed rows to all indices, or to the named ones.

        Indices of an unknown kind are left unchanged, with a warning.

        Args:
            num_indices_to_merge: Merge only this many of the newest segments; 0 writes the new rows
                as a new segment. By default all segments and the new rows become one.
            index_names: The indices; by default all.
            retrain: Rebuild the indices.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.insert(ds.head(1))
            >>> ds.optimize.optimize_indices()
            >>> ds.index_statistics("id_idx")["num_unindexed_rows"]
            0
        """
        names = None if index_names is None else tuple(index_names)
        options = RefreshOptions(
            index_names=names, num_indices_to_merge=num_indices_to_merge, retrain=retrain
        )
        run = IndexRun(choices=self._dataset._choices)
        done = refresh_indices(self._dataset._snapshot, options, run)
        self._dataset._snapshot = done.snapshot
        for name in done.skipped:
            warnings.warn(f"index {name!r} is of an unknown kind and was not updated", stacklevel=2)


def _ensure_none(kwargs: Mapping[str, object]) -> None:
    for name in kwargs:
        raise TypeError(f"got an unexpected keyword argument {name!r}")


class DatasetMaintenance:
    """Properties for maintenance."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction and index maintenance.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> ds.optimize.compact_files().fragments_removed
            2
        """
        return DatasetOptimizer(self)
