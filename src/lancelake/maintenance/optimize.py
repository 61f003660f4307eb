"""Compaction, indices and cleanup in one call, as a table's settings ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lancelake.commit.snapshot import Snapshot, list_versions
from lancelake.engine.port import Engine, Progress
from lancelake.errors import ConflictError, InvalidRequestError, UnsupportedError
from lancelake.maintenance.cleanup.plan import DEFAULT_AGE, CleanupPolicy
from lancelake.maintenance.cleanup.run import CleanupReport, clean_up, policy_of
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.options import from_config as compaction_from_config
from lancelake.maintenance.compact.plan import RewritePlan, clustered, plan
from lancelake.maintenance.compact.run import CompactionCounts, CompactionRun, compact
from lancelake.maintenance.compact.task import CompactFragments
from lancelake.table.config import number, truth
from lancelake.table.index.build import DEFAULT_RUN, IndexRun
from lancelake.table.index.refresh import (
    DEFAULT_OPTIONS,
    IndexWork,
    RefreshOptions,
    planned,
    refresh_indices,
)
from lancelake.table.publish import DEFAULT_CHOICES, OLDER_THAN, CommitChoices


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceDue:
    """Pending work, described by index, and why other indices are left as they are."""

    works: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()


class IndexMaintenance(Protocol):
    """Index maintenance to run from time to time."""

    def due(self, at: Snapshot) -> MaintenanceDue:
        """Describe the pending work for a version."""

    def run(
        self, at: Snapshot, engine: Engine | None, choices: CommitChoices
    ) -> tuple[Snapshot, tuple[str, ...]]:
        """Run it, and return the resulting version, and why indices were left as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarIndexMaintenance:
    """Adds unindexed rows and merges segments."""

    options: RefreshOptions = DEFAULT_OPTIONS
    how: IndexRun = DEFAULT_RUN

    def due(self, at: Snapshot) -> MaintenanceDue:
        """Return the indices that do not cover all fragments, or have segments to be merged."""
        found = planned(at, self.options)
        works = tuple(_shown(work) for work in found.works if work.is_due)
        return MaintenanceDue(works=works, not_done=found.reasons)

    def run(
        self,
        at: Snapshot,
        engine: Engine | None,  # noqa: ARG002  # `how` states where indices are built
        choices: CommitChoices,
    ) -> tuple[Snapshot, tuple[str, ...]]:
        """Refresh all indices."""
        done = refresh_indices(at, self.options, replace(self.how, choices=choices))
        return done.snapshot, done.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMerging:
    """Merges the segments of indices that have several.

    Compaction does not join fragments of different segments.
    """

    options: RefreshOptions = DEFAULT_OPTIONS
    how: IndexRun = DEFAULT_RUN

    def due(self, at: Snapshot) -> MaintenanceDue:
        """Return the indices with several segments to be merged."""
        return MaintenanceDue(works=tuple(map(_shown, self._in_several_segments(at))))

    def run(
        self,
        at: Snapshot,
        engine: Engine | None,  # noqa: ARG002  # `how` states where indices are built
        choices: CommitChoices,
    ) -> tuple[Snapshot, tuple[str, ...]]:
        """Merge them, and add unindexed rows."""
        names = tuple(work.name for work in self._in_several_segments(at))
        options = replace(self.options, index_names=names)
        done = refresh_indices(at, options, replace(self.how, choices=choices))
        return done.snapshot, done.reasons

    def _in_several_segments(self, at: Snapshot) -> list[IndexWork]:
        return [work for work in planned(at, self.options).works if len(work.merged) > 1]


def _shown(work: IndexWork) -> str:
    fragments, segments = len(work.new_fragments), len(work.merged)
    parts = [f"add {fragments} fragments"] if fragments else []
    parts += [f"merge {segments} segments"] if segments > 1 else []
    return f"index {work.name!r}: {', '.join(parts)}"


INDEX_MAINTENANCE: tuple[IndexMaintenance, ...] = (ScalarIndexMaintenance(),)
"""Index maintenance steps after a compaction, in this order."""

BEFORE_COMPACTION: tuple[IndexMaintenance, ...] = (SegmentMerging(),)
"""Index maintenance steps without which a compaction could not join fragments."""


CONFIG_PREFIX = "lancelake.optimize."

_FEW_FRAGMENTS = 4
_FEW_VERSIONS = 20


def _careful() -> CleanupPolicy:
    return CleanupPolicy(older_than=DEFAULT_AGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSettings:
    """The steps to run, and their thresholds."""

    compact: bool = True
    cleanup: bool = True

    min_fragments_saved: int = _FEW_FRAGMENTS
    """Minimum number of fragments saved by a compaction, unless it removes deleted rows."""

    min_versions: int = _FEW_VERSIONS
    """Minimum number of versions for a cleanup."""

    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    policy: CleanupPolicy = field(default_factory=_careful)

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        for name in ("min_fragments_saved", "min_versions"):
            if getattr(self, name) < 0:
                raise InvalidRequestError(f"{name} must not be negative", found=getattr(self, name))


def from_config(config: Mapping[str, str]) -> OptimizeSettings:
    """Read the settings in a table's config; the others have their defaults.

    Compaction options are read from `lance.compaction.*`, cleanup options from
    `lance.auto_cleanup.*`. Versions younger than two weeks are retained unless the config sets an
    age.
    """
    given: dict[str, Any] = {}
    for key, text in config.items():
        name = key.removeprefix(CONFIG_PREFIX)
        if name != key and name in _READERS:
            given[name] = _READERS[name](key, text)
    policy = policy_of(config)
    if OLDER_THAN not in config:
        policy = replace(policy, older_than=DEFAULT_AGE)
    return OptimizeSettings(**given, compaction=compaction_from_config(config), policy=policy)


_READERS: dict[str, Callable[[str, str], object]] = {
    "compact": truth,
    "cleanup": truth,
    "min_fragments_saved": number,
    "min_versions": number,
}


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
        at, left = summary.snapshot, due.not_done
        if due.works and not summary.is_dry_run:
            at, left = step.run(at, run.engine, run.choices)
        # A dry run finds the same work before and after a compaction, and both the same failures.
        indices = tuple(dict.fromkeys((*summary.indices, *due.works)))
        skipped = tuple(dict.fromkeys((*summary.skipped, *left)))
        summary = replace(summary, snapshot=at, indices=indices, skipped=skipped)
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
    report = clean_up(
        summary.snapshot,
        how.policy,
        dry_run=summary.is_dry_run,
        progress=run.progress,
        engine=run.engine,
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
