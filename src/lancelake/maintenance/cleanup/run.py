"""Removal of old versions and orphans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lancelake import events, log
from lancelake.commit.snapshot import (
    Latest,
    Snapshot,
    branch_location,
    has_table,
    latest_version,
    open_line,
    open_snapshot,
    update_hint,
)
from lancelake.data.codec.readers import forget_readers
from lancelake.engine.port import Engine, Job, LocalEngine, Progress
from lancelake.errors import InvalidRequestError, StorageError
from lancelake.format import layout
from lancelake.format.words import parse_duration
from lancelake.maintenance import reachable
from lancelake.maintenance.cleanup.plan import (
    CleanupPlan,
    CleanupPolicy,
    PlannedCleanup,
    PlannedFile,
    Planning,
    Reason,
    Totals,
    count,
    make_plan,
    planned,
    remove_records,
    safe_after_ns,
    unfinished,
    write_record,
)
from lancelake.scan.row_lookup import close_fragments
from lancelake.storage.local import ensure_no_link, remove_empty_folders
from lancelake.storage.location import Location
from lancelake.table import publish


def is_abandoned(location: Location) -> bool:
    """Whether a folder has files of a table, but no version, tag or branch that needs them."""
    return not _has_versions(location) and any(
        file.kind is not reachable.FileKind.UNKNOWN for file in _listed(location)
    )


def clean_up_folder(
    location: Location, policy: CleanupPolicy, *, dry_run: bool = False
) -> CleanupReport:
    """Remove the files of a folder that never became a table.

    Only with `delete_unverified`, whatever their age: the folder may be a base path of a table at
    another location, or its first write may be running.
    """
    going_reason = Reason.ABANDONED if policy.delete_unverified else Reason.YOUNG
    judged = [
        planned(file, Reason.UNKNOWN if file.kind is reachable.FileKind.UNKNOWN else going_reason)
        for file in _listed(location)
    ]
    going = tuple(file for file in judged if file.reason is Reason.ABANDONED)
    staying = tuple(file for file in judged if file.reason is not Reason.ABANDONED)
    failed: frozenset[str] = frozenset()
    if going and not dry_run:
        # The first write may have been committed since the files were listed.
        if _has_versions(location):
            raise InvalidRequestError("the folder became a table", table=location.uri)
        engine = LocalEngine(parallelism=1)
        paths = [file.path for file in going]
        rate = policy.delete_rate_limit
        job = removal(location, paths, engine, per_second=rate, progress=None)
        failed = from_bytes(engine.run(job))
        remove_empty_folders(location)
    return CleanupReport(
        plan=CleanupPlan(
            location=location, branch=None, read_version=0, going=going, staying=staying
        ),
        totals=count(file for file in going if file.path not in failed),
        failed=failed,
        is_dry_run=dry_run,
    )


def _has_versions(location: Location) -> bool:
    """Whether a version of the main line or a branch may need files of a folder."""
    store = location.store
    folders = (layout.TREE, layout.TAGS, layout.BRANCHES)
    return has_table(location) or any(
        next(iter(store.list(folder)), None) is not None for folder in folders
    )


def _listed(location: Location) -> list[reachable.ListedFile]:
    return [*reachable.list_files(location, LocalEngine(parallelism=1)), *unfinished(location)]


_TASK_BYTES = 16 << 20
_BATCH_FILES = 1_000
_LEAST_FILES = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles:
    """Files to remove, at most `per_second` in every second."""

    location: Location
    paths: tuple[str, ...]
    per_second: float | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Remove the files and return those that failed, as bytes that `from_bytes` reads."""
        return json.dumps(self.remove()).encode()

    def remove(self) -> list[str]:
        """Remove the files and return those that could not be removed."""
        clock = self.location.session.clock
        failed: list[str] = []
        size = _BATCH_FILES if self.per_second is None else max(1, int(self.per_second))
        began = clock.monotonic_s()
        done = 0
        for batch in _batches(self.paths, min(size, _BATCH_FILES)):
            failed += self._batch(batch)
            done += len(batch)
            if self.per_second is not None and done < len(self.paths):
                due = began + done / self.per_second
                clock.sleep(max(0.0, due - clock.monotonic_s()))
        return failed

    def _batch(self, paths: Sequence[str]) -> list[str]:
        store = self.location.store
        try:
            store.delete_many(paths)
        except StorageError:
            return [path for path in paths if not self._one(path)]
        return []

    def _one(self, path: str) -> bool:
        try:
            self.location.store.delete(path)
        except StorageError:
            return False
        return True


def from_bytes(results: Iterable[bytes]) -> frozenset[str]:
    """Return the files that runs of `RemoveFiles` could not remove."""
    return frozenset(path for result in results for path in json.loads(result))


def removal(
    location: Location,
    paths: Sequence[str],
    engine: Engine,
    *,
    per_second: int | None,
    progress: Progress | None,
) -> Job:
    """Return the removal of files as a job; parallel tasks share the rate limit."""
    # Chunks are small enough for workers to finish at about the same time.
    size = max(_LEAST_FILES, -(-len(paths) // (4 * engine.parallelism)))
    at_once = 1
    if per_second is not None:
        at_once = max(1, min(engine.parallelism, per_second))
        size = max(1, -(-len(paths) // at_once))
    allowed = None if per_second is None else per_second / at_once
    tasks = tuple(
        RemoveFiles(location=location, paths=tuple(part), per_second=allowed)
        for part in _batches(paths, size)
    )
    return Job(description=f"remove files of {location.uri}", tasks=tasks, progress=progress)


def _batches(paths: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (paths[start : start + size] for start in range(0, len(paths), size))


_DEFAULT = CleanupPolicy()
# Most of the time is spent waiting for the store. A local disk responds faster than threads switch.
_REQUESTS = 8
_REQUESTS_TO_DISK = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport:
    """The files and versions that were removed, or would be in a dry run.

    `versions` are version numbers, `failed` are files that the store did not remove: the next
    cleanup retries them. `branches` are the reports of branches that were cleaned up too.
    """

    plan: CleanupPlan
    versions: tuple[int, ...] = ()
    totals: dict[reachable.FileKind, Totals] = field(default_factory=dict)
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
    engine: Engine | None = None,
) -> CleanupReport:
    """Remove old versions of a version line, and its files that are no longer referenced.

    Manifests are removed before the files they refer to, so that every version that can be opened
    is complete whenever this is interrupted; the next cleanup finishes the work. Nothing outside
    the line's own root is removed. With `dry_run` nothing is removed. Without an engine, it runs
    in this process, on as many threads as suit the store.
    """
    place = at if isinstance(at, Location) else at.location
    events.emit(events.DATASET, event="cleaning", uri=place.uri)
    base = at if isinstance(at, Snapshot) else open_snapshot(at, Latest())
    if base.branch is not None and base.location.scheme == "file":
        ensure_no_link(base.main_location.uri, layout.branch_root(base.branch))
    planning = Planning(
        policy=policy,
        engine=(
            engine or place.session.engine or LocalEngine(parallelism=_requests(base.location))
        ),
        now_ns=place.session.clock.now_ns(),
        progress=progress,
    )
    branches = _clean_branches(base, planning, engine, dry_run=dry_run)
    if dry_run:
        plan = make_plan(base, planning).plan
        report = _report(plan, plan.going, frozenset(), is_dry_run=True)
    else:
        clock = place.session.clock
        with log.Operation(log.CLEANUP, _SENTENCE, place.uri, clock=clock) as operation:
            report = _carry_out(base, make_plan(base, planning), planning)
            operation.facts |= _facts(report)
    return replace(report, branches=branches)


_SENTENCE = "cleaned up {table}"


def _facts(report: CleanupReport) -> log.Facts:
    return {
        "operation": "CLEAN UP",
        "versions_removed": len(report.versions),
        "files_removed": report.files_removed,
        "bytes_removed": report.bytes_removed,
        "files_failed": len(report.failed),
    }


def _requests(location: Location) -> int:
    return _REQUESTS_TO_DISK if location.scheme == "file" else _REQUESTS


def _clean_branches(
    base: Snapshot, planning: Planning, engine: Engine | None, *, dry_run: bool
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
            engine=engine,
        )
        for name in reachable.KnownRefs.load(main).forks(base.branch)
    )


def _carry_out(base: Snapshot, planned: PlannedCleanup, planning: Planning) -> CleanupReport:
    location = base.location
    plan = _still_free(base, planned, planning)
    manifests = [file.path for file in plan.going if file.kind is reachable.FileKind.MANIFEST]
    records = planned.records.records
    if manifests:
        verified = [file.path for file in plan.going if file.reason is Reason.DROPPED]
        if verified and (record := write_record(location, verified)) is not None:
            records = (*records, record)
        update_hint(open_line(location), latest_version(location).version)
        location.store.delete_many(manifests)
    # Writers that started from a version before it was removed have committed by now, and their
    # commits are visible here; no writer can start from it any more.
    news = _news(reachable.Family.load(base.location, base.main_location), planned.seen, planning)
    files = [
        file
        for file in plan.going
        if file.kind is not reachable.FileKind.MANIFEST and not _needs(news, file)
    ]
    job = removal(
        location,
        [file.path for file in files],
        planning.engine,
        per_second=planning.policy.delete_rate_limit,
        progress=planning.progress,
    )
    failed = from_bytes(planning.engine.run(job)) if files else frozenset()
    close_fragments(location)
    forget_readers(location, frozenset(location.child(file.path).uri for file in files))
    if not failed:
        remove_records(location, records)
    gone = [file for file in plan.going if file.kind is reachable.FileKind.MANIFEST] + files
    return _report(plan, gone, failed, is_dry_run=False)


def _still_free(base: Snapshot, planned: PlannedCleanup, planning: Planning) -> CleanupPlan:
    """Check again, immediately before removal, for tags and branches on versions to be removed."""
    plan = planned.plan
    if not plan.going_versions:
        return plan
    held = reachable.KnownRefs.load(base.main_location).held(base.branch)
    saved = tuple(version for version in plan.going_versions if version.version in held)
    if not saved:
        return plan
    names = tuple(version.name for version in saved)
    line = reachable.ReachableLine(location=base.location, names=names)
    needed = reachable.needed_by([line], planning.engine, planning.progress)
    manifests = {layout.manifest(name) for name in names}
    return replace(
        plan,
        going_versions=tuple(v for v in plan.going_versions if v not in saved),
        going=tuple(
            file for file in plan.going if file.path not in manifests and not _needs(needed, file)
        ),
    )


def _news(
    family: reachable.Family, seen: dict[str, frozenset[str]], planning: Planning
) -> reachable.Reach:
    """Return the files needed by versions that were committed after the plan was made."""
    lines = (
        replace(
            line,
            names=tuple(name for name in line.names if name not in seen.get(line.location.uri, ())),
        )
        for line in (family.own, *family.others)
    )
    return reachable.needed_by(lines, planning.engine, planning.progress)


def _needs(reach: reachable.Reach, file: PlannedFile) -> bool:
    if reach.is_empty:
        return False
    kind, known_as = reachable.classify(file.path)
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


# The version just committed, and the one its writer may still be reading.
_ALWAYS_KEPT = 2
_MOST_DIGITS = 19
_TRUTHS = {"true": True, "false": False}


def clean_up_if_due(made: Snapshot) -> None:
    """Clean up if the config of a version that was just committed requires it now."""
    config = made.manifest.config
    if publish.INTERVAL not in config:
        return
    interval = _number(config, publish.INTERVAL) or 0
    if interval == 0 or made.version % interval == 0:
        clean_up(made, policy_of(config))


def policy_of(config: Mapping[str, str]) -> CleanupPolicy:
    """Return the cleanup policy of a config.

    Tags retain their versions without raising an error; the two newest versions are always
    retained.
    """
    age = config.get(publish.OLDER_THAN)
    return CleanupPolicy(
        older_than=None if age is None else _age(age),
        retain_versions=max(_ALWAYS_KEPT, _number(config, publish.RETAIN_VERSIONS, least=1) or 0),
        delete_rate_limit=_number(config, publish.RATE_LIMIT, least=1),
        clean_referenced_branches=_truth(config, publish.REFERENCED_BRANCHES),
    )


def _age(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidRequestError(f"config {publish.OLDER_THAN}: {error}", found=text) from error


def _number(config: Mapping[str, str], key: str, *, least: int = 0) -> int | None:
    text = config.get(key)
    if text is None:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or int(text) < least:
        problem = f"config {key} is {text!r}, but must be a number of at least {least}"
        raise InvalidRequestError(problem, found=text)
    return int(text)


def _truth(config: Mapping[str, str], key: str) -> bool:
    text = config.get(key, "false")
    if text not in _TRUTHS:
        problem = f"config {key} is {text!r}, but must be true or false"
        raise InvalidRequestError(problem, found=text)
    return _TRUTHS[text]
