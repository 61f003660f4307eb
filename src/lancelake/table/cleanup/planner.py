"""Plan a cleanup from a table and a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine, Progress
from lancelake.errors import InvalidRequestError, LanceTableError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName, parse_manifest_name
from lancelake.format.version_outline import files_of_transaction
from lancelake.storage.leftovers import unfinished_files
from lancelake.storage.local import finished_name
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.cleanup.plan import (
    CleanupPlan,
    PlannedFile,
    PlannedVersion,
    Reason,
    ReferencedBranch,
    planned,
)
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.cleanup.record import Records, read_records
from lancelake.table.reachable.file_kinds import FOLDERS, FileKind, classify
from lancelake.table.reachable.listing import ListedFile, list_files
from lancelake.table.reachable.needed_files import (
    FoundVersion,
    Reach,
    Reading,
    ReadVersions,
    needed_by,
    parts,
    read_versions,
)
from lancelake.table.reachable.version_lines import Family, is_manifest


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
        *list_files(at.location, planning.engine, planning.progress),
        *_unfinished(at.location),
    ]
    family = Family.load(at.location, at.main_location)
    own = _read_own(at, family, planning)
    _ensure_no_tags(at, family, own.versions, planning.policy)
    others = needed_by(family.others, planning.engine, planning.progress)
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


def seen(family: Family) -> dict[str, frozenset[str]]:
    """Return the manifest names of all lines, by the root of the line."""
    lines = (family.own, *family.others)
    return {line.location.uri: frozenset(line.names) for line in lines}


_GOING = frozenset({Reason.DROPPED, Reason.BEGUN, Reason.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Decides whether to remove or keep a file."""

    named: dict[FileKind, dict[str, Reason]]
    """Reasons derived from versions, by file name."""
    in_flight: Reach
    begun: frozenset[str]
    policy: CleanupPolicy
    safe_before_ns: int

    def __call__(self, file: ListedFile) -> PlannedFile:
        return planned(file, self._reason(file))

    def _reason(self, file: ListedFile) -> Reason:
        kind, known_as = file.kind, file.known_as
        if kind is FileKind.UNKNOWN:
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


def _named(own: Reading, others: Reach) -> dict[FileKind, dict[str, Reason]]:
    """Return the reasons for files that versions refer to; versions that are kept win."""
    return {
        kind: dict.fromkeys(own.dropped.names(kind), Reason.DROPPED)
        | dict.fromkeys(others.names(kind), Reason.NEEDED_ELSEWHERE)
        | dict.fromkeys(own.kept.names(kind), Reason.NEEDED)
        for kind in FileKind
    }


def _unfinished(location: Location) -> Iterator[ListedFile]:
    """Yield unfinished files of writers: next to manifests, and anywhere on a local disk."""
    for found in unfinished_files(location, (*FOLDERS, layout.VERSIONS)):
        finished = finished_name(found.path)
        is_known = is_manifest(finished.rpartition("/")[2]) or (
            classify(finished)[0] is not FileKind.UNKNOWN
        )
        yield ListedFile(
            path=found.path,
            kind=FileKind.TEMPORARY if is_known else FileKind.UNKNOWN,
            known_as=found.path,
            size_bytes=found.size_bytes,
            modified_ns=found.modified_ns,
        )
    store = open_store(location)
    for name in store.list_names(layout.VERSIONS):
        if is_manifest(name):
            continue
        path = layout.manifest(name)
        kind, known_as = classify(path)
        if kind is not FileKind.TEMPORARY:
            continue
        with suppress(ObjectNotFoundError):
            info = store.head(path)
            yield ListedFile(
                path=path,
                kind=kind,
                known_as=known_as,
                size_bytes=info.size_bytes,
                modified_ns=info.modified_ns,
            )


def _read_own(at: Snapshot, family: Family, planning: Planning) -> Reading:
    parsed = [name for name in map(parse_manifest_name, family.own.names) if name is not None]
    old = frozenset(_old_by_number(at, parsed, planning.policy))
    versions = family.refs.held(at.branch)
    held = frozenset(name.name for name in parsed if name.version in versions)
    tasks = tuple(
        ReadVersions(
            location=at.location,
            names=names,
            old=old.intersection(names),
            held=held.intersection(names),
            before_ns=planning.policy.before_ns(planning.now_ns),
        )
        for names in parts(family.own.names, planning.engine)
    )
    return read_versions(tasks, planning.engine, planning.progress)


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
    at: Snapshot, family: Family, versions: Iterable[FoundVersion], policy: CleanupPolicy
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
    location: Location, files: Iterable[ListedFile], own: Reading, planning: Planning
) -> Reach:
    """Return the files in recent uncommitted transactions, which may still be committed."""
    found = Reach()
    if planning.policy.delete_unverified:
        return found
    safe_before_ns = planning.policy.unsafe_after_ns(planning.now_ns)
    committed = own.kept.transactions | own.dropped.transactions
    store = open_store(location)
    for file in files:
        if file.kind is not FileKind.TRANSACTION or file.modified_ns < safe_before_ns:
            continue
        if file.known_as not in committed:
            try:
                found.add(files_of_transaction(store.get(file.path)))
            except LanceTableError:
                # Removed in the meantime, or incomplete: it cannot be committed.
                continue
    return found.settle()


def _versions(
    at: Snapshot, family: Family, versions: Sequence[FoundVersion]
) -> list[PlannedVersion]:
    tagged = frozenset(family.refs.tagged(at.branch).values())
    forks = frozenset(family.refs.forks(at.branch).values())
    newest = max((v.version for v in versions if not is_detached(v.version)), default=0)
    bound = newest if is_detached(at.version) else min(newest, at.version)

    def reason(found: FoundVersion) -> Reason:
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


def _manifests(versions: Iterable[FoundVersion]) -> Iterator[PlannedFile]:
    for version in sorted(versions, key=lambda v: v.version):
        if version.is_dropped:
            path = layout.manifest(version.name)
            yield PlannedFile(path, FileKind.MANIFEST, version.size_bytes, Reason.OLD)


def _branches(
    at: Snapshot, family: Family, versions: Iterable[FoundVersion]
) -> tuple[ReferencedBranch, ...]:
    old = {version.version for version in versions if version.is_old}
    return tuple(
        ReferencedBranch(name=name, version=version, is_candidate=version in old)
        for name, version in sorted(family.refs.forks(at.branch).items())
    )
