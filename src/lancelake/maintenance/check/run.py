"""Check of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from lancelake import errors
from lancelake.commit.snapshot import Snapshot, branch_location
from lancelake.engine.port import Engine, LocalEngine
from lancelake.format import layout
from lancelake.format.layout import ManifestName, is_detached
from lancelake.format.operations import Clone
from lancelake.maintenance.check.finding import (
    FileSizes,
    Finding,
    OnProgress,
    Progress,
    Severity,
    Subject,
    guarded,
)
from lancelake.maintenance.check.one_version import VersionChecks
from lancelake.maintenance.check.refs import (
    CheckedLine,
    CheckedRefs,
    check_names,
    check_numbers,
    check_refs,
    check_zombies,
)
from lancelake.maintenance.reachable import Family, FileKind, Reach, list_files, needed_by
from lancelake.storage.location import Location

_KINDS = {
    layout.DATA: "data file",
    layout.DELETIONS: "deletion file",
    layout.INDICES: "index file",
    layout.TRANSACTIONS: "transaction file",
}
_NEVER_NEEDED = frozenset({FileKind.TEMPORARY, FileKind.UNKNOWN})


def check_orphans(
    lines: Sequence[CheckedLine], main: Location, *, unread: int, engine: Engine | None = None
) -> Iterator[Finding]:
    """Count the orphan files of version lines of one table.

    `unread` is the number of versions that cannot be read.
    """
    engine = engine or LocalEngine()
    if unread:
        yield from (_unknown(line, f"{unread} versions cannot be read") for line in lines)
        return
    try:
        family = Family.load(lines[0].location, main)
        needed = needed_by((family.own, *family.others), engine)
    except errors.StorageUnavailableError:
        raise
    except errors.LanceTableError as error:
        reason = f"the files of versions cannot be read ({error.problem})"
        yield from (_unknown(line, reason) for line in lines)
        return
    for line in lines:
        yield from _orphans(line, needed, engine)


def _orphans(line: CheckedLine, needed: Reach, engine: Engine) -> Iterator[Finding]:
    counts = dict.fromkeys(_KINDS, 0)
    sizes = dict.fromkeys(_KINDS, 0)
    for file in list_files(line.location, engine):
        if file.kind not in _NEVER_NEEDED and not needed.holds(file.kind, file.known_as):
            folder = file.path.partition("/")[0]
            counts[folder] += 1
            sizes[folder] += file.size_bytes
    for folder, kind in _KINDS.items():
        count = counts[folder]
        if count:
            yield line.finding(
                Severity.INFO,
                "strays",
                f"{count} {kind}{'' if count == 1 else 's'} of {sizes[folder]} bytes are not "
                "referenced by any version",
                path=folder,
                hint="They belong to a write in progress or to one that failed; cleanup "
                "removes them once they are old enough.",
            )


def _unknown(line: CheckedLine, reason: str) -> Finding:
    message = f"{reason}, so their files would be reported as orphans"
    return line.finding(Severity.INFO, "strays-unknown", message)


Versions = Literal["all", "latest"]


def check(
    location: Location,
    *,
    data: bool = False,
    versions: Versions = "latest",
    on_progress: OnProgress | None = None,
    engine: Engine | None = None,
) -> Iterator[Finding]:
    """Yield findings about a table and its branches as they are found; damage is never raised.

    With `data`, every value is read, by the given engine or on threads. A finding about files that
    several versions share is reported for the newest of them. Orphan files are only reported if all
    versions are checked. Raises an error if there is no table, or the store is unreachable.
    """
    line = CheckedLine.load(location, branch=None)
    if not line.names:
        raise errors.TableNotFoundError(
            "no Lance table was found at this location", table=location.uri
        )
    run = _Run(data=data, versions=versions, on_progress=on_progress, engine=engine)
    return _without_duplicates(run.table(line))


def _without_duplicates(findings: Iterator[Finding]) -> Iterator[Finding]:
    seen: set[tuple[str | None, ...]] = set()
    for finding in findings:
        key = (finding.branch, finding.code, finding.path, finding.message)
        if key not in seen:
            seen.add(key)
            yield finding


class _Run:
    """One pass over a table."""

    def __init__(
        self,
        *,
        data: bool,
        versions: Versions,
        on_progress: OnProgress | None,
        engine: Engine | None,
    ) -> None:
        self._data = data
        self._engine = engine
        self._all = versions == "all"
        self._on_progress = on_progress
        self._sizes = FileSizes()
        self._unread = self._done = self._total = 0

    def table(self, root: CheckedLine) -> Iterator[Finding]:
        """Check a root: that of a table with all its branches, or that of one branch."""
        newest = _newest(root)
        branch = None if newest is None else newest.branch
        main = root.location if newest is None else newest.main_location
        refs = CheckedRefs.load(main)
        lines = {branch: replace(root, branch=branch)}
        if branch is None:
            for name in refs.branches:
                lines[name] = CheckedLine.load(branch_location(main, name), branch=name)
        self._total = sum(len(self._chosen(line)) for line in lines.values())
        for line in lines.values():
            yield from self._line(line, refs)
        if branch is None:
            yield from guarded("tags and branches", partial(check_refs, refs, lines))
            yield from guarded("branches", partial(check_zombies, main, refs))
        if self._all:
            orphans = partial(
                check_orphans, tuple(lines.values()), main, unread=self._unread, engine=self._engine
            )
            yield from guarded("orphan files", orphans)

    def _line(self, line: CheckedLine, refs: CheckedRefs) -> Iterator[Finding]:
        yield from guarded("manifest names", partial(check_names, line), branch=line.branch)
        numbers = partial(_numbers, line, refs)
        yield from guarded("version numbers", numbers, branch=line.branch)
        checks = VersionChecks(data=self._data, engine=self._engine)
        after: Snapshot | None = None
        for name in self._chosen(line):
            self._report(line, name)
            snapshot = _load(line, name)
            if isinstance(snapshot, Finding):
                self._unread += 1
                yield snapshot
                continue
            yield from _identity(line, snapshot, after)
            yield from checks(Subject(snapshot, self._sizes))
            after = snapshot

    def _chosen(self, line: CheckedLine) -> list[ManifestName]:
        if self._all:
            return line.newest_first + line.detached
        return line.newest_first[:1]

    def _report(self, line: CheckedLine, name: ManifestName) -> None:
        if self._on_progress is not None:
            on = f" of branch {line.branch}" if line.branch else ""
            step = f"version {name.version}{on}"
            self._on_progress(Progress(step=step, done=self._done, total=self._total))
        self._done += 1


def _newest(line: CheckedLine) -> Snapshot | None:
    for name in line.newest_first[:1]:
        snapshot = _load(line, name)
        if isinstance(snapshot, Snapshot):
            return snapshot
    return None


def _load(line: CheckedLine, name: ManifestName) -> Snapshot | Finding:
    try:
        return Snapshot.load(line.location, name)
    except errors.StorageUnavailableError:
        raise
    except errors.VersionNotFoundError:
        severity, code, message = (
            Severity.INFO,
            "version-vanished",
            "the version was removed during the check",
        )
        hint = None
    except errors.UnsupportedError as error:
        severity, code, message = Severity.ERROR, "version-unsupported", error.problem
        hint = "This version could not be checked; use a newer release."
    except errors.LanceTableError as error:
        severity, code, message = Severity.ERROR, "manifest-damaged", error.problem
        hint = "Open an older version, or restore the manifest from a backup."
    path = layout.manifest(name.name)
    return line.finding(severity, code, message, version=name.version, path=path, hint=hint)


def _identity(line: CheckedLine, snapshot: Snapshot, after: Snapshot | None) -> Iterator[Finding]:
    """Check that a manifest's version matches its name, and is older than its successor."""
    version = snapshot.version
    path = layout.manifest(snapshot.name.name)
    if version != snapshot.name.version:
        message = (
            f"the manifest named for version {snapshot.name.version} contains version {version}"
        )
        hint = "Readers use the version in the manifest; rename the file."
        yield line.finding(
            Severity.ERROR, "manifest-name", message, version=version, path=path, hint=hint
        )
    if after is None or is_detached(snapshot.name.version):
        return
    written, next_written = snapshot.manifest.timestamp_ns, after.manifest.timestamp_ns
    if written is not None and next_written is not None and written > next_written:
        message = (
            f"version timestamp {snapshot.manifest.timestamp} is later than that of its "
            f"successor {after.version}; opening a version by time is not exact"
        )
        yield line.finding(Severity.INFO, "timestamp-order", message, version=version, path=path)


def _numbers(line: CheckedLine, refs: CheckedRefs) -> Iterator[Finding]:
    return check_numbers(line, refs.kept(line.branch), cloned_at=_cloned_at(line))


def _cloned_at(line: CheckedLine) -> int | None:
    """Return the oldest version if it was, or may have been, created by a clone."""
    oldest = line.newest_first[-1:]
    if not oldest or oldest[0].version == 1:
        return None
    try:
        made_by = Snapshot.load(line.location, oldest[0]).transaction
    except errors.StorageUnavailableError:
        raise
    except errors.LanceTableError:
        return oldest[0].version
    is_clone = made_by is not None and isinstance(made_by.operation, Clone)
    return oldest[0].version if is_clone else None
