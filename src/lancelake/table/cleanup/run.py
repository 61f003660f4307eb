"""Plan and execute a cleanup that can be interrupted at any point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lancelake import events
from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_hint import update_hint
from lancelake.commit.version_line import open_line
from lancelake.commit.versions import latest_version
from lancelake.data.codec.readers import forget_readers
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Progress
from lancelake.format import layout
from lancelake.scan.take import close_fragments
from lancelake.storage.local import ensure_no_link
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.cleanup.plan import CleanupPlan, PlannedFile, Reason, Totals, count
from lancelake.table.cleanup.planner import PlannedCleanup, Planning, make_plan
from lancelake.table.cleanup.policy import CleanupPolicy, safe_after_ns
from lancelake.table.cleanup.record import remove_records, write_record
from lancelake.table.cleanup.remove import from_bytes, removal
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.reachable.file_kinds import FileKind, classify
from lancelake.table.reachable.needed_files import Reach, needed_by
from lancelake.table.reachable.version_lines import Family, KnownRefs, ReachableLine
from lancelake.table.refs import branch_location

_DEFAULT = CleanupPolicy()
# Most of the time is spent waiting for the store. A local disk responds faster than threads switch.
_REQUESTS = 8
_REQUESTS_TO_DISK = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupRun:
    """The engine of a cleanup, and its sources of time and randomness.

    Without an engine it runs in this process, on as many threads as suit the store.
    """

    engine: Engine | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport:
    """The files and versions that were removed, or would be in a dry run.

    `versions` are version numbers, `failed` are files that the store did not remove: the next
    cleanup retries them. `branches` are the reports of branches that were cleaned up too.
    """

    plan: CleanupPlan
    versions: tuple[int, ...] = ()
    totals: dict[FileKind, Totals] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    is_dry_run: bool = False
    branches: tuple[CleanupReport, ...] = ()

    @property
    def files_removed(self) -> int:
        """Number of files of all kinds, including those of branches."""
        own = sum(total.files for total in self.totals.values())
        return own + sum(report.files_removed for report in self.branches)

    @property
    def bytes_removed(self) -> int:
        """Size of those files."""
        own = sum(total.size_bytes for total in self.totals.values())
        return own + sum(report.bytes_removed for report in self.branches)

    @property
    def waiting(self) -> tuple[PlannedFile, ...]:
        """Files that no version refers to, kept because a write in progress may need them."""
        others = (file for report in self.branches for file in report.waiting)
        return (*self.plan.waiting, *others)

    @property
    def waiting_until_ns(self) -> int | None:
        """Time after which a cleanup removes all of them; None if there are none."""
        times = (file.modified_ns for file in self.waiting)
        return max((safe_after_ns(time) for time in times if time is not None), default=None)


def clean_up(
    at: Snapshot | Location,
    policy: CleanupPolicy = _DEFAULT,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    run: CleanupRun | None = None,
) -> CleanupReport:
    """Remove old versions of a version line, and its files that are no longer referenced.

    Manifests are removed before the files they refer to, so that every version that can be opened
    is complete whenever this is interrupted; the next cleanup finishes the work. Nothing outside
    the line's own root is removed. With `dry_run` nothing is removed.
    """
    place = at if isinstance(at, Location) else at.location
    events.emit(events.DATASET, event="cleaning", uri=place.uri)
    running = run or CleanupRun()
    base = at if isinstance(at, Snapshot) else open_snapshot(at, Latest())
    if base.branch is not None and base.location.scheme == "file":
        ensure_no_link(base.main_location.uri, layout.branch_root(base.branch))
    planning = Planning(
        policy=policy,
        engine=running.engine or LocalEngine(parallelism=_requests(base.location)),
        now_ns=running.clock.now_ns(),
        progress=progress,
    )
    branches = _clean_branches(base, planning, running, dry_run=dry_run)
    planned = make_plan(base, planning)
    if dry_run:
        report = _report(planned.plan, planned.plan.going, frozenset(), is_dry_run=True)
    else:
        report = _carry_out(base, planned, planning, running)
    return replace(report, branches=branches)


def _requests(location: Location) -> int:
    return _REQUESTS_TO_DISK if location.scheme == "file" else _REQUESTS


def _clean_branches(
    base: Snapshot, planning: Planning, run: CleanupRun, *, dry_run: bool
) -> tuple[CleanupReport, ...]:
    """Clean up the branches forked from this line, and those forked from them."""
    if not planning.policy.clean_referenced_branches:
        return ()
    main = base.main_location
    return tuple(
        clean_up(
            open_snapshot(branch_location(main, name), Latest(), main=main),
            replace(planning.policy, versions=None),
            dry_run=dry_run,
            progress=planning.progress,
            run=run,
        )
        for name in KnownRefs.load(main).forks(base.branch)
    )


def _carry_out(
    base: Snapshot, planned: PlannedCleanup, planning: Planning, run: CleanupRun
) -> CleanupReport:
    location = base.location
    plan = _still_free(base, planned, planning)
    manifests = [file.path for file in plan.going if file.kind is FileKind.MANIFEST]
    records = planned.records.records
    if manifests:
        verified = [file.path for file in plan.going if file.reason is Reason.DROPPED]
        if verified and (record := write_record(location, verified, run.ids)) is not None:
            records = (*records, record)
        update_hint(open_line(location), latest_version(location).version)
        open_store(location).delete_many(manifests)
    # Writers that started from a version before it was removed have committed by now, and their
    # commits are visible here; no writer can start from it any more.
    news = _news(Family.load(base.location, base.main_location), planned.seen, planning)
    files = [
        file for file in plan.going if file.kind is not FileKind.MANIFEST and not _needs(news, file)
    ]
    job = removal(
        location,
        [file.path for file in files],
        planning.engine,
        per_second=planning.policy.delete_rate_limit,
        progress=planning.progress,
    )
    failed = from_bytes(planning.engine.run(job)) if files else frozenset()
    close_fragments()
    forget_readers(frozenset(location.child(file.path).uri for file in files))
    if not failed:
        remove_records(location, records)
    gone = [file for file in plan.going if file.kind is FileKind.MANIFEST] + files
    return _report(plan, gone, failed, is_dry_run=False)


def _still_free(base: Snapshot, planned: PlannedCleanup, planning: Planning) -> CleanupPlan:
    """Check again, immediately before removal, for tags and branches on versions to be removed."""
    plan = planned.plan
    if not plan.going_versions:
        return plan
    held = KnownRefs.load(base.main_location).held(base.branch)
    saved = tuple(version for version in plan.going_versions if version.version in held)
    if not saved:
        return plan
    names = tuple(version.name for version in saved)
    line = ReachableLine(location=base.location, names=names)
    needed = needed_by([line], planning.engine, planning.progress)
    manifests = {layout.manifest(name) for name in names}
    return replace(
        plan,
        going_versions=tuple(v for v in plan.going_versions if v not in saved),
        going=tuple(
            file for file in plan.going if file.path not in manifests and not _needs(needed, file)
        ),
    )


def _news(family: Family, seen: dict[str, frozenset[str]], planning: Planning) -> Reach:
    """Return the files needed by versions that were committed after the plan was made."""
    lines = (
        replace(
            line,
            names=tuple(name for name in line.names if name not in seen.get(line.location.uri, ())),
        )
        for line in (family.own, *family.others)
    )
    return needed_by(lines, planning.engine, planning.progress)


def _needs(reach: Reach, file: PlannedFile) -> bool:
    if reach.is_empty:
        return False
    kind, known_as = classify(file.path)
    return reach.holds(kind, known_as)


def _report(
    plan: CleanupPlan, gone: Iterable[PlannedFile], failed: frozenset[str], *, is_dry_run: bool
) -> CleanupReport:
    return CleanupReport(
        plan=plan,
        versions=tuple(version.version for version in plan.going_versions),
        totals=count(file for file in gone if file.path not in failed),
        failed=failed,
        is_dry_run=is_dry_run,
    )
