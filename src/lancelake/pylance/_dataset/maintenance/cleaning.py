"""Dataset methods that clean up old versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.local import LocalEngine
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.table.cleanup.plan import CleanupPlan, PlannedFile, Totals
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.cleanup.run import CleanupReport, CleanupRun, clean_up
from lancelake.table.reachable.file_kinds import FileKind

_MOST_CONCURRENT = (1 << 61) - 1
_NOTHING = Totals()


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
    plan: CleanupPlan


class DatasetCleanup:
    """Methods that clean up old versions, or explain a cleanup."""

    _snapshot: Snapshot

    @os_errors()
    @names_dataset
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
        policy = CleanupPolicy(
            older_than=_age(older_than),
            retain_versions=_unsigned(retain_versions),
            versions=_numbers(versions),
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=_unsigned(delete_rate_limit),
        )
        return _stats(clean_up(self._snapshot, policy, run=_run(delete_concurrency)))

    @os_errors()
    @names_dataset
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
            older_than: As in `cleanup_old_versions`.
            retain_versions: As in `cleanup_old_versions`.
            delete_unverified: As in `cleanup_old_versions`.
            error_if_tagged_old_versions: As in `cleanup_old_versions`.
            delete_rate_limit: As in `cleanup_old_versions`.
            versions: As in `cleanup_old_versions`.
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
        policy = CleanupPolicy(
            older_than=_age(older_than),
            retain_versions=_unsigned(retain_versions),
            versions=_numbers(versions),
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=_unsigned(delete_rate_limit),
        )
        report = clean_up(self._snapshot, policy, dry_run=True)
        return _explanation(report, max_files, include_files=include_files)


def _explanation(
    report: CleanupReport, max_files: int, *, include_files: bool
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


def _candidates(files: Iterable[PlannedFile]) -> list[CleanupCandidateFile]:
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


def _stats(report: CleanupReport) -> CleanupStats:
    def files(*kinds: FileKind) -> int:
        return sum(report.totals.get(kind, _NOTHING).files for kind in kinds)

    return CleanupStats(
        bytes_removed=report.bytes_removed,
        old_versions=len(report.versions),
        data_files_removed=files(FileKind.DATA, FileKind.BLOB),
        transaction_files_removed=files(FileKind.TRANSACTION),
        index_files_removed=files(FileKind.INDEX),
        deletion_files_removed=files(FileKind.DELETION),
        failed_deletes=len(report.failed),
    )


def _run(concurrency: int | None) -> CleanupRun:
    if concurrency is None:
        return CleanupRun()
    if not 1 <= concurrency <= _MOST_CONCURRENT:
        problem = f"delete_concurrency must be between 1 and {_MOST_CONCURRENT}, got {concurrency}"
        raise InvalidRequestError(problem, found=concurrency)
    return CleanupRun(engine=LocalEngine(parallelism=concurrency))


def _age(older_than: object) -> timedelta | None:
    if older_than is None or isinstance(older_than, timedelta):
        return older_than
    msg = f"older_than must be a timedelta, not {type(older_than).__name__}"
    raise TypeError(msg)


def _unsigned(number: int | None) -> int | None:
    if number is not None and number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return number


def _numbers(versions: list[int] | None) -> frozenset[int] | None:
    if versions is None:
        return None
    return frozenset(_unsigned(version) or 0 for version in versions)
