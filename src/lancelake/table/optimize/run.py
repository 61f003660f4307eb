"""Optimize a table in one call: compact it, maintain its indices, and clean it up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.engine.port import Engine, Progress
from lancelake.errors import ConflictError, UnsupportedError
from lancelake.table.cleanup.run import CleanupReport, CleanupRun, clean_up
from lancelake.table.compact.clustering import clustered
from lancelake.table.compact.plan import RewritePlan, plan
from lancelake.table.compact.run import CompactionCounts, CompactionRun, compact
from lancelake.table.compact.task import CompactFragments
from lancelake.table.optimize.index_maintenance import (
    BEFORE_COMPACTION,
    INDEX_MAINTENANCE,
    IndexMaintenance,
)
from lancelake.table.optimize.settings import OptimizeSettings, from_config
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeRun:
    """The engine of the work, and how it is committed."""

    engine: Engine | None = None
    choices: CommitChoices = DEFAULT_CHOICES
    progress: Progress | None = None
    before_compaction: tuple[IndexMaintenance, ...] = BEFORE_COMPACTION
    index_maintenance: tuple[IndexMaintenance, ...] = INDEX_MAINTENANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSummary:
    """What was done, or would be, and why other steps were skipped.

    `snapshot` is the newest version known. `conflict` describes a conflict with another writer: the
    work is left to the next call.
    """

    before: Snapshot
    snapshot: Snapshot
    compaction: CompactionCounts | None = None
    indices: tuple[str, ...] = ()
    cleanup: CleanupReport | None = None
    skipped: tuple[str, ...] = ()
    conflict: str | None = None
    is_dry_run: bool = False

    @property
    def has_work(self) -> bool:
        """Whether any work was done, or would be."""
        removed = self.cleanup is not None and bool(
            self.cleanup.files_removed or self.cleanup.versions
        )
        return self.compaction is not None or bool(self.indices) or removed

    def without(self, what: str) -> OptimizeSummary:
        """Return the summary with a reason for a skipped step."""
        return replace(self, skipped=(*self.skipped, what))


def optimize(
    base: Snapshot,
    settings: OptimizeSettings | None = None,
    *,
    dry_run: bool = False,
    run: OptimizeRun | None = None,
) -> OptimizeSummary:
    """Run the steps that are worthwhile; without settings, those in the table's config apply.

    Without pending work no version is created. Concurrent calls are safe: work done by one is
    skipped by the others. With `dry_run` nothing is changed.
    """
    how = settings or from_config(base.manifest.config)
    running = run or OptimizeRun()
    summary = OptimizeSummary(before=base, snapshot=base, is_dry_run=dry_run)
    try:
        if how.compact:
            summary = _with_index_maintenance(summary, running.before_compaction, running)
        summary = _compacted(summary, how, running)
        summary = _with_index_maintenance(summary, running.index_maintenance, running)
    except ConflictError as conflict:
        summary = replace(summary, conflict=conflict.problem)
    return _cleaned_up(summary, how, running)


def _compacted(
    summary: OptimizeSummary, how: OptimizeSettings, run: OptimizeRun
) -> OptimizeSummary:
    if not how.compact:
        return summary.without("compaction is turned off")
    try:
        planned = plan(summary.snapshot, how.compaction)
    except UnsupportedError as error:
        return summary.without(f"no compaction: {error.problem}")
    saved, deleted = _gain(planned)
    if not planned.tasks:
        return summary.without("no fragment is worth rewriting")
    if saved < how.min_fragments_saved and not deleted:
        return summary.without(
            f"a compaction would save {saved} fragments, fewer than the minimum of "
            f"{how.min_fragments_saved}"
        )
    if summary.is_dry_run:
        return replace(summary, compaction=_expected(planned))
    running = CompactionRun(engine=run.engine, choices=run.choices, progress=run.progress)
    done = compact(summary.snapshot, clustered(summary.snapshot, how.compaction), running)
    # Another call may have done all of it first.
    metrics = done.metrics if done.metrics.fragments_removed else None
    return replace(summary, snapshot=done.snapshot, compaction=metrics)


def _with_index_maintenance(
    summary: OptimizeSummary, steps: tuple[IndexMaintenance, ...], run: OptimizeRun
) -> OptimizeSummary:
    for step in steps:
        due = step.due(summary.snapshot)
        if not due:
            continue
        at = summary.snapshot
        if not summary.is_dry_run:
            at = step.run(at, run.engine, run.choices)
        # A dry run finds the same work before and after a compaction.
        indices = tuple(dict.fromkeys((*summary.indices, *due)))
        summary = replace(summary, snapshot=at, indices=indices)
    return summary


def _cleaned_up(
    summary: OptimizeSummary, how: OptimizeSettings, run: OptimizeRun
) -> OptimizeSummary:
    if not how.cleanup:
        return summary.without("cleanup is turned off")
    versions = len(list_versions(summary.snapshot.location))
    if versions < how.min_versions:
        return summary.without(
            f"the table has {versions} versions; cleanup starts at {how.min_versions}"
        )
    running = CleanupRun() if run.engine is None else CleanupRun(engine=run.engine)
    report = clean_up(
        summary.snapshot,
        how.policy,
        dry_run=summary.is_dry_run,
        progress=run.progress,
        run=running,
    )
    return replace(summary, cleanup=report)


def _gain(planned: RewritePlan) -> tuple[int, int]:
    """Return the number of fragments saved, and of deleted rows removed."""
    saved = len([f for task in planned.tasks for f in task.fragments]) - _files_made(planned)
    fragments = (f for task in planned.tasks for f in task.fragments)
    return saved, sum(f.num_deleted_rows or 0 for f in fragments)


def _expected(planned: RewritePlan) -> CompactionCounts:
    """Return what a compaction would remove, and the number of fragments it would create."""
    old = [fragment for task in planned.tasks for fragment in task.fragments]
    return CompactionCounts(
        fragments_removed=len(old),
        fragments_added=_files_made(planned),
        files_removed=sum(len(f.files) + (f.deletion_file is not None) for f in old),
        files_added=_files_made(planned),
        bytes_removed=sum(file.file_size_bytes or 0 for f in old for file in f.files),
    )


def _files_made(planned: RewritePlan) -> int:
    """Count the files that tasks write; a sorting task writes about as many as it reads."""
    return sum(
        len(task.file_rows if isinstance(task, CompactFragments) else task.fragments)
        for task in planned.tasks
    )
