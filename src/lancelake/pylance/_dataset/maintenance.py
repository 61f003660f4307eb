"""Methods of maintenance: compaction, indices, cleanup."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Unpack

from lancelake.core.values import reports
from lancelake.core.values.indices import IndexRun, LocalEngine, RefreshOptions
from lancelake.core.values.writes import INTERVAL, OLDER_THAN
from lancelake.errors import InvalidRequestError, naming
from lancelake.pylance._dataset.arguments import NoOptions, os_errors
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._dataset.write import AutoCleanupConfig, cleanup_config
from lancelake.pylance._values.opened import call_text, describes_as, given
from lancelake.pylance.optimize import Compaction, CompactionMetrics, SortKeys

_MOST_CONCURRENT = (1 << 61) - 1
_NOTHING = reports.Totals()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupStats:
    """Statistics of a cleanup; manifests count as versions, blob files as data files."""

    bytes_removed: int
    old_versions: int
    data_files_removed: int
    transaction_files_removed: int
    index_files_removed: int
    deletion_files_removed: int
    failed_deletes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupCandidateFile:
    """A file that would be removed, with the reason."""

    path: str
    kind: str
    unverified: bool
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReferencedBranch:
    """A branch that retains a version; `cleanup_candidate` if it is cleaned up as well."""

    name: str
    referenced_version: int
    cleanup_candidate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupExplanation:
    """What a cleanup would remove; `plan` has every file and version, with reasons."""

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]
    plan: reports.CleanupPlan


def _explanation(
    report: reports.CleanupReport, max_files: int, *, include_files: bool
) -> CleanupExplanation:
    plan = report.plan
    is_cut = include_files and len(plan.going) > max_files
    return CleanupExplanation(
        read_version=plan.read_version,
        stats=_stats(report),
        candidate_files=_candidates(plan.going[:max_files]) if include_files else [],
        candidate_files_truncated=is_cut,
        candidate_file_limit=max_files,
        referenced_branches=[
            CleanupReferencedBranch(
                name=branch.name,
                referenced_version=branch.version,
                cleanup_candidate=False,
            )
            for branch in plan.branches
        ],
        warnings=[f"candidate_files truncated to {max_files} entries"] if is_cut else [],
        plan=plan,
    )


def _candidates(files: Iterable[reports.PlannedFile]) -> list[CleanupCandidateFile]:
    return [
        CleanupCandidateFile(
            path=file.path,
            kind=file.kind,
            unverified=file.is_unverified,
            size_bytes=file.size_bytes,
            reason=file.reason,
        )
        for file in files
    ]


def _stats(report: reports.CleanupReport) -> CleanupStats:
    def files(*kinds: reports.FileKind) -> int:
        return sum(report.totals.get(kind, _NOTHING).files for kind in kinds)

    return CleanupStats(
        bytes_removed=report.bytes_removed,
        old_versions=len(report.versions),
        data_files_removed=files(reports.FileKind.DATA, reports.FileKind.BLOB),
        transaction_files_removed=files(reports.FileKind.TRANSACTION),
        index_files_removed=files(reports.FileKind.INDEX),
        deletion_files_removed=files(reports.FileKind.DELETION),
        failed_deletes=len(report.failed),
    )


def _engine(concurrency: int | None) -> LocalEngine | None:
    if concurrency is None:
        return None
    if not 1 <= concurrency <= _MOST_CONCURRENT:
        problem = f"delete_concurrency must be between 1 and {_MOST_CONCURRENT}, got {concurrency}"
        raise InvalidRequestError(problem, found=concurrency)
    return LocalEngine(parallelism=concurrency)


def _age(older_than: object) -> timedelta | None:
    if older_than is None or isinstance(older_than, timedelta):
        return older_than
    raise TypeError(f"older_than must be a timedelta, not {type(older_than).__name__}")


def _unsigned(number: int | None) -> int | None:
    if number is not None and number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return number


def _numbers(versions: list[int] | None) -> frozenset[int] | None:
    if versions is None:
        return None
    return frozenset(_unsigned(version) or 0 for version in versions)


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
        options: Any = given(locals(), without=("groups_per_commit",))
        run = reports.CompactionRun(groups_per_commit=groups_per_commit)
        return Compaction.execute(self._dataset, options, run)

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
        run = reports.OptimizeRun(choices=self._dataset._choices)
        summary = self._dataset._table.maintenance.optimize(dry_run=dry_run, run=run)
        self._dataset._snapshot = summary.snapshot
        return reports.optimize_document(summary)

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
            LanceTableError: An index cannot be read; all others are refreshed before.

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
        done = self._dataset._table.indices.refresh(options, run)
        self._dataset._snapshot = done.snapshot
        for name in done.skipped:
            warnings.warn(f"index {name!r} is of an unknown kind and was not updated", stacklevel=2)
        done.raise_failure()


def _ensure_none(kwargs: Mapping[str, object]) -> None:
    for name in kwargs:
        raise TypeError(f"got an unexpected keyword argument {name!r}")


class DatasetMaintenance(DatasetState):
    """Compaction, index maintenance and cleanup."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction and index maintenance.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> ds.optimize.compact_files().fragments_removed
            2
        """
        return DatasetOptimizer(self)

    @os_errors()
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Remove versions and the files that only they need.

        The open version and all later ones are retained, as are versions with a tag or a branch.

        Args:
            older_than: Remove versions that were committed longer ago; two weeks if no argument
                selects versions.
            retain_versions: Keep at least this many of the newest versions.
            delete_unverified: Remove unreferenced files that are younger than a week. Only safe if
                there is no active writer.
            error_if_tagged_old_versions: Fail if a tag retains a version that would be removed.
            delete_rate_limit: Files to remove per second, at most.
            versions: Remove these versions instead.
            delete_concurrency: Ignored.

        Returns:
            What was removed.

        Raises:
            InvalidRequestError: A tag retains a version, or the arguments exclude each other.

        Examples:
            >>> from datetime import timedelta
            >>> ds.truncate_table()
            >>> ds.cleanup_old_versions(timedelta(0)).old_versions
            1
        """
        options = delete_unverified, error_if_tagged_old_versions, delete_rate_limit
        policy = self._policy(older_than, retain_versions, versions, *options)
        return _stats(self._table.maintenance.clean_up(policy, engine=_engine(delete_concurrency)))

    @os_errors()
    @describes_as(cleanup_old_versions)
    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """Explain what `cleanup_old_versions` would remove, without removing anything.

        Args:
            include_files: List the files.
            max_files: Files to list, at most.

        Returns:
            Counts and files; `plan` has the reasons to remove or keep each file and version.

        Examples:
            >>> from datetime import timedelta
            >>> ds.truncate_table()
            >>> ds.explain_cleanup_old_versions(timedelta(0)).stats.old_versions
            1
        """
        if max_files <= 0:
            raise InvalidRequestError("max_files must be positive", found=max_files)
        options = delete_unverified, error_if_tagged_old_versions, delete_rate_limit
        policy = self._policy(older_than, retain_versions, versions, *options)
        report = self._table.maintenance.clean_up(policy, dry_run=True)
        return _explanation(report, max_files, include_files=include_files)

    def _policy(
        self,
        older_than: timedelta | None,
        retain_versions: int | None,
        versions: list[int] | None,
        delete_unverified: bool,
        error_if_tagged_old_versions: bool,
        delete_rate_limit: int | None,
    ) -> reports.CleanupPolicy:
        with naming(self._snapshot.location.uri, self._snapshot.version):
            return reports.CleanupPolicy(
                older_than=_age(older_than),
                retain_versions=_unsigned(retain_versions),
                versions=_numbers(versions),
                delete_unverified=delete_unverified,
                error_if_tagged_old_versions=error_if_tagged_old_versions,
                delete_rate_limit=_unsigned(delete_rate_limit),
            )
