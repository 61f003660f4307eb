"""Which versions and files a cleanup removes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine, Progress
from lancelake.errors import InvalidRequestError, LanceTableError, ObjectNotFoundError, StorageError
from lancelake.format import layout
from lancelake.format.layout import ManifestName, is_detached, parse_manifest_name
from lancelake.format.manifest import files_of_transaction
from lancelake.maintenance import reachable
from lancelake.storage.local import finished_name, unfinished_files
from lancelake.storage.location import Location

DEFAULT_AGE = timedelta(days=14)
"""Default age from which versions are removed."""

SAFE_AGE = timedelta(days=7)
"""Age from which unreferenced files cannot belong to a write in progress."""

_NANOSECONDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy:
    """Options of a cleanup. A version is removed only if every given condition allows it.

    `older_than`: it was committed longer ago. `retain_versions`: it is not among that many newest
    versions. `versions`: it is one of these, which is the only way to remove a detached version.
    Without any of the three, versions older than two weeks are removed. Never removed are the
    newest version, the version the cleanup starts from and later ones, tagged versions, and
    versions from which a branch was forked.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    """Remove unreferenced files of any age; only safe without concurrent writers."""

    error_if_tagged_old_versions: bool = False
    """Raise an error if a tag retains a version that would otherwise be removed, as pylance does by
    default.
    """

    delete_rate_limit: int | None = None
    """Maximum number of files deleted per second."""

    clean_referenced_branches: bool = False
    """Also clean up the branches of the table, before the main line."""

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        for name in ("retain_versions", "delete_rate_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problem = f"Cleanup error: {name} must be greater than 0, got {value}"
                raise InvalidRequestError(problem, found=value)
        if self.versions is not None and not self.versions:
            raise InvalidRequestError("versions must not be empty when specified")

    def before_ns(self, now_ns: int) -> int | None:
        """Return the time before which a version must have been committed to be removed."""
        age = self.older_than
        if age is None:
            if self.retain_versions is not None or self.versions is not None:
                return None
            age = DEFAULT_AGE
        return now_ns - nanoseconds(age)

    def unsafe_after_ns(self, now_ns: int) -> int:
        """Return the time after which an unreferenced file may belong to a write in progress."""
        return now_ns - nanoseconds(SAFE_AGE)


def safe_after_ns(modified_ns: int) -> int:
    """Return the time after which an unreferenced file cannot belong to a write in progress."""
    return modified_ns + nanoseconds(SAFE_AGE)


def nanoseconds(age: timedelta) -> int:
    """Return a duration as whole nanoseconds."""
    return age // timedelta(microseconds=1) * _NANOSECONDS


class Reason(StrEnum):
    """Reason to remove or keep a file or version."""

    OLD = "it is old enough, and nothing retains it"
    DROPPED = "only removed versions refer to it"
    BEGUN = "an interrupted cleanup had started to remove it"
    ABANDONED = "no version refers to it"

    NEEDED = "a version refers to it"
    NEEDED_ELSEWHERE = "a branch or a clone within the table refers to it"
    IN_FLIGHT = "an uncommitted transaction refers to it"
    YOUNG = "no version refers to it, but it may belong to a write in progress"
    UNKNOWN = "it is not a file of a table"

    LATEST = "it is the newest, or not older than the one the cleanup started from"
    TAGGED = "a tag refers to it"
    FORK = "a branch was forked from it"
    DETACHED = "it is detached, and is only removed if it is named"
    RECENT = "it is not old enough, or is among the versions to retain"


# Tuples, since thousands are created: they take a third of the time of frozen dataclasses.
class PlannedVersion(NamedTuple):
    """A version with the reason to remove or keep it; `name` is that of its manifest."""

    name: str
    version: int
    timestamp_ns: int | None
    reason: Reason


class PlannedFile(NamedTuple):
    """A file with the reason to remove or keep it."""

    path: str
    kind: reachable.FileKind
    size_bytes: int
    reason: Reason
    modified_ns: int | None = None
    """Time of the last change; None for manifests of known versions."""

    @property
    def is_unverified(self) -> bool:
        """Whether no version is known to refer to it."""
        return self.reason is Reason.ABANDONED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedBranch:
    """A branch that was forked from a version of the line."""

    name: str
    version: int
    is_candidate: bool
    """Whether the version would be removed if the branch did not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPlan:
    """Versions and files of one version line to remove or keep; `files` include manifests."""

    location: Location
    branch: str | None
    read_version: int
    going_versions: tuple[PlannedVersion, ...] = ()
    staying_versions: tuple[PlannedVersion, ...] = ()
    going: tuple[PlannedFile, ...] = ()
    staying: tuple[PlannedFile, ...] = ()
    branches: tuple[ReferencedBranch, ...] = ()

    @property
    def totals(self) -> dict[reachable.FileKind, Totals]:
        """Count the files to remove, by kind."""
        return count(self.going)

    @property
    def waiting(self) -> tuple[PlannedFile, ...]:
        """Files that no version refers to, kept because a write in progress may need them."""
        reasons = (Reason.YOUNG, Reason.IN_FLIGHT)
        return tuple(file for file in self.staying if file.reason in reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A number of files and their size."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)


def count(files: Iterable[PlannedFile]) -> dict[reachable.FileKind, Totals]:
    """Count files by kind."""
    numbers: dict[reachable.FileKind, int] = {}
    sizes: dict[reachable.FileKind, int] = {}
    for file in files:
        numbers[file.kind] = numbers.get(file.kind, 0) + 1
        sizes[file.kind] = sizes.get(file.kind, 0) + file.size_bytes
    return {kind: Totals(files=numbers[kind], size_bytes=sizes[kind]) for kind in numbers}


def planned(file: reachable.ListedFile, reason: Reason) -> PlannedFile:
    """Return a listed file with a reason."""
    return PlannedFile(file.path, file.kind, file.size_bytes, reason, file.modified_ns)


FOLDER = "_cleanup"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Files that interrupted cleanups were to remove, and the paths of their records."""

    paths: frozenset[str] = frozenset()
    records: tuple[str, ...] = ()


def write_record(location: Location, paths: Iterable[str]) -> str | None:
    """Record which files are to be removed, and return the path of the record.

    Once the manifests are removed, nothing else distinguishes these files from those of a write in
    progress. Returns None if the record cannot be written: after an interruption the files are then
    removed when they are too old to belong to a write in progress.
    """
    record = f"{FOLDER}/{location.session.ids.uuid4()}{_SUFFIX}"
    try:
        location.store.put(record, json.dumps({"paths": sorted(paths)}).encode())
    except StorageError:
        return None
    return record


def read_records(location: Location) -> Records:
    """Return the unfinished work of interrupted cleanups."""
    store = location.store
    paths: set[str] = set()
    records = []
    for name in store.list_names(FOLDER):
        record = f"{FOLDER}/{name}"
        try:
            found = json.loads(store.get(record))["paths"]
            paths.update(path for path in found if isinstance(path, str))
        except (LanceTableError, ValueError, LookupError, TypeError, RecursionError):
            # Another cleanup finished in the meantime, or this is not a record.
            continue
        records.append(record)
    return Records(paths=frozenset(paths), records=tuple(records))


def remove_records(location: Location, records: Iterable[str]) -> None:
    """Delete records of finished work."""
    location.store.delete_many(records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Inputs of a plan."""

    policy: CleanupPolicy
    engine: Engine
    now_ns: int
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCleanup:
    """A plan with everything needed to execute it."""

    plan: CleanupPlan
    records: Records
    seen: dict[str, frozenset[str]] = field(default_factory=dict)
    """The manifests that were read, by the root of their line."""


def make_plan(at: Snapshot, planning: Planning) -> PlannedCleanup:
    """Decide which versions and files to remove or keep, with reasons.

    Files are listed before versions: a file of a version that is not read did not exist yet at the
    listing.
    """
    records = read_records(at.location)
    files = [
        *reachable.list_files(at.location, planning.engine, planning.progress),
        *unfinished(at.location),
    ]
    family = reachable.Family.load(at.location, at.main_location)
    own = _read_own(at, family, planning)
    _ensure_no_tags(at, family, own.versions, planning.policy)
    others = reachable.needed_by(family.others, planning.engine, planning.progress)
    judge = _Judge(
        named=_named(own, others),
        in_flight=_in_flight(at.location, files, own, planning),
        begun=records.paths,
        policy=planning.policy,
        safe_before_ns=planning.policy.unsafe_after_ns(planning.now_ns),
    )
    judged = [judge(file) for file in files]
    versions = _versions(at, family, own.versions)
    manifests = _manifests(own.versions)
    plan = CleanupPlan(
        location=at.location,
        branch=at.branch,
        read_version=at.version,
        going_versions=tuple(v for v in versions if v.reason is Reason.OLD),
        staying_versions=tuple(v for v in versions if v.reason is not Reason.OLD),
        going=(*manifests, *(file for file in judged if file.reason in _GOING)),
        staying=tuple(file for file in judged if file.reason not in _GOING),
        branches=_branches(at, family, own.versions),
    )
    return PlannedCleanup(plan=plan, records=records, seen=seen(family))


def seen(family: reachable.Family) -> dict[str, frozenset[str]]:
    """Return the manifest names of all lines, by the root of the line."""
    lines = (family.own, *family.others)
    return {line.location.uri: frozenset(line.names) for line in lines}


_GOING = frozenset({Reason.DROPPED, Reason.BEGUN, Reason.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Decides whether to remove or keep a file."""

    named: dict[reachable.FileKind, dict[str, Reason]]
    """Reasons derived from versions, by file name."""
    in_flight: reachable.Reach
    begun: frozenset[str]
    policy: CleanupPolicy
    safe_before_ns: int

    def __call__(self, file: reachable.ListedFile) -> PlannedFile:
        return planned(file, self._reason(file))

    def _reason(self, file: reachable.ListedFile) -> Reason:
        kind, known_as = file.kind, file.known_as
        if kind is reachable.FileKind.UNKNOWN:
            return Reason.UNKNOWN
        if (reason := self.named[kind].get(known_as)) is not None:
            return reason
        if file.path in self.begun:
            return Reason.BEGUN
        if self.policy.delete_unverified:
            return Reason.ABANDONED
        if self.in_flight.holds(kind, known_as):
            return Reason.IN_FLIGHT
        return Reason.ABANDONED if file.modified_ns < self.safe_before_ns else Reason.YOUNG


def _named(
    own: reachable.Reading, others: reachable.Reach
) -> dict[reachable.FileKind, dict[str, Reason]]:
    """Return the reasons for files that versions refer to; versions that are kept win."""
    return {
        kind: dict.fromkeys(own.dropped.names(kind), Reason.DROPPED)
        | dict.fromkeys(others.names(kind), Reason.NEEDED_ELSEWHERE)
        | dict.fromkeys(own.kept.names(kind), Reason.NEEDED)
        for kind in reachable.FileKind
    }


def unfinished(location: Location) -> Iterator[reachable.ListedFile]:
    """Yield unfinished files of writers: next to manifests, and anywhere on a local disk."""
    for found in unfinished_files(location, (*reachable.FOLDERS, layout.VERSIONS)):
        finished = finished_name(found.path)
        is_known = reachable.is_manifest(finished.rpartition("/")[2]) or (
            reachable.classify(finished)[0] is not reachable.FileKind.UNKNOWN
        )
        yield reachable.ListedFile(
            path=found.path,
            kind=reachable.FileKind.TEMPORARY if is_known else reachable.FileKind.UNKNOWN,
            known_as=found.path,
            size_bytes=found.size_bytes,
            modified_ns=found.modified_ns,
        )
    store = location.store
    for name in store.list_names(layout.VERSIONS):
        if reachable.is_manifest(name):
            continue
        path = layout.manifest(name)
        kind, known_as = reachable.classify(path)
        if kind is not reachable.FileKind.TEMPORARY:
            continue
        with suppress(ObjectNotFoundError):
            info = store.head(path)
            yield reachable.ListedFile(
                path=path,
                kind=kind,
                known_as=known_as,
                size_bytes=info.size_bytes,
                modified_ns=info.modified_ns,
            )


def _read_own(at: Snapshot, family: reachable.Family, planning: Planning) -> reachable.Reading:
    parsed = [name for name in map(parse_manifest_name, family.own.names) if name is not None]
    old = frozenset(_old_by_number(at, parsed, planning.policy))
    versions = family.refs.held(at.branch)
    held = frozenset(name.name for name in parsed if name.version in versions)
    tasks = tuple(
        reachable.ReadVersions(
            location=at.location,
            names=names,
            old=old.intersection(names),
            held=held.intersection(names),
            before_ns=planning.policy.before_ns(planning.now_ns),
        )
        for names in reachable.parts(family.own.names, planning.engine)
    )
    return reachable.read_versions(tasks, planning.engine, planning.progress)


def _old_by_number(
    at: Snapshot, names: Sequence[ManifestName], policy: CleanupPolicy
) -> Iterator[str]:
    """Yield the manifests of versions that the policy allows to remove by number."""
    attached = sorted({name.version for name in names if not is_detached(name.version)})
    bounds = [attached[-1]] if attached else []
    if not is_detached(at.version):
        bounds.append(at.name.version)
    if policy.retain_versions is not None:
        bounds += attached[-policy.retain_versions :][:1]
    for name in names:
        if policy.versions is not None and name.version not in policy.versions:
            continue
        if is_detached(name.version):
            if policy.versions is not None and name.version != at.name.version:
                yield name.name
        elif all(name.version < bound for bound in bounds):
            yield name.name


def _ensure_no_tags(
    at: Snapshot,
    family: reachable.Family,
    versions: Iterable[reachable.FoundVersion],
    policy: CleanupPolicy,
) -> None:
    if not policy.error_if_tagged_old_versions:
        return
    old = {version.version for version in versions if version.is_old}
    tags = {
        tag: version for tag, version in family.refs.tagged(at.branch).items() if version in old
    }
    if tags:
        shown = ", ".join(f'"{tag}": {version}' for tag, version in tags.items())
        raise InvalidRequestError(
            f"Cleanup error: {len(set(tags.values()))} tagged version(s) have been marked for "
            "cleanup. Either set `error_if_tagged_old_versions=false` or delete the following "
            f"tag(s) to enable cleanup: {{{shown}}}",
            table=at.location.uri,
        )


def _in_flight(
    location: Location,
    files: Iterable[reachable.ListedFile],
    own: reachable.Reading,
    planning: Planning,
) -> reachable.Reach:
    """Return the files in recent uncommitted transactions, which may still be committed."""
    found = reachable.Reach()
    if planning.policy.delete_unverified:
        return found
    safe_before_ns = planning.policy.unsafe_after_ns(planning.now_ns)
    committed = own.kept.transactions | own.dropped.transactions
    store = location.store
    for file in files:
        if file.kind is not reachable.FileKind.TRANSACTION or file.modified_ns < safe_before_ns:
            continue
        if file.known_as not in committed:
            try:
                found.add(files_of_transaction(store.get(file.path)))
            except LanceTableError:
                # Removed in the meantime, or incomplete: it cannot be committed.
                continue
    return found.settle()


def _versions(
    at: Snapshot, family: reachable.Family, versions: Sequence[reachable.FoundVersion]
) -> list[PlannedVersion]:
    tagged = frozenset(family.refs.tagged(at.branch).values())
    forks = frozenset(family.refs.forks(at.branch).values())
    newest = max((v.version for v in versions if not is_detached(v.version)), default=0)
    bound = newest if is_detached(at.version) else min(newest, at.version)

    def reason(found: reachable.FoundVersion) -> Reason:
        if found.is_dropped:
            return Reason.OLD
        if is_detached(found.version):
            return Reason.DETACHED
        if found.version >= bound:
            return Reason.LATEST
        if found.version in tagged:
            return Reason.TAGGED
        return Reason.FORK if found.version in forks else Reason.RECENT

    return [
        PlannedVersion(found.name, found.version, found.timestamp_ns, reason(found))
        for found in sorted(versions, key=lambda v: v.version)
    ]


def _manifests(versions: Iterable[reachable.FoundVersion]) -> Iterator[PlannedFile]:
    for version in sorted(versions, key=lambda v: v.version):
        if version.is_dropped:
            path = layout.manifest(version.name)
            yield PlannedFile(path, reachable.FileKind.MANIFEST, version.size_bytes, Reason.OLD)


def _branches(
    at: Snapshot, family: reachable.Family, versions: Iterable[reachable.FoundVersion]
) -> tuple[ReferencedBranch, ...]:
    old = {version.version for version in versions if version.is_old}
    return tuple(
        ReferencedBranch(name=name, version=version, is_candidate=version in old)
        for name, version in sorted(family.refs.forks(at.branch).items())
    )
