"""Versions of a table: references to them, an opened one, and the line that has them all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar, assert_never

from lancelake import errors, events
from lancelake.commit.external_store import ExternalHandler, open_dynamodb
from lancelake.commit.handler import CommitHandler, ConditionalPut, hinted_version
from lancelake.commit.ref_files import missing_ref, ref_names
from lancelake.format import index_meta, layout, refs
from lancelake.format.frozen import computed_once
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import (
    ManifestName,
    ensure_branch_name,
    ensure_tag_name,
    is_detached,
    manifest_name,
)
from lancelake.format.manifest import Manifest, ManifestFile, decode_manifest
from lancelake.format.operations import Transaction, decode_transaction
from lancelake.format.refs import Branch, Tag
from lancelake.format.schema import Schema
from lancelake.storage.location import Location
from lancelake.storage.obstore_store import abilities
from lancelake.storage.store import ObjectStore, confined_path
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.txn.options import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics:
    """What a commit took.

    Attributes:
        attempts: Manifests that were written; 0 if an earlier call had committed the change.
        concurrent_commits: Commits of other writers that were checked for conflicts.
        rebases: How often the change was rebased on a newer version.
        lost_replies: Requests to the store whose replies were lost.
        milliseconds: Duration of the commit, without the work before it.
        manifest_bytes: Size of the manifest.
    """

    attempts: int = 0
    concurrent_commits: int = 0
    rebases: int = 0
    lost_replies: int = 0
    milliseconds: int = 0
    manifest_bytes: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, index entries and transaction, and the location of its files."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int
    commit: CommitMetrics | None = field(default=None, compare=False)
    """What its commit took, if this process has just made it."""

    @staticmethod
    def load(
        location: Location, name: ManifestName, *, store: ObjectStore | None = None
    ) -> Snapshot:
        """Read the manifest of a version, from the location's own store unless one is given."""
        with errors.naming(location.uri, name.version):
            try:
                data = (store or location.store).get(layout.manifest(name.name))
            except errors.ObjectNotFoundError as error:
                raise errors.VersionNotFoundError(
                    f"version {name.version} was not found"
                ) from error
            return Snapshot(location, name, decode_manifest(data), len(data))

    @staticmethod
    def of_state(
        location: Location, name: ManifestName, file: ManifestFile, size: int, state: TableState
    ) -> Snapshot:
        """Return a version that was just built; its parts are not decoded again."""
        snapshot = Snapshot(location, name, file, size)
        vars(snapshot)["state"], vars(snapshot)["indices"] = state, state.indices
        return snapshot

    def after(self, commit: CommitMetrics) -> Snapshot:
        """Return the version with what its commit took."""
        snapshot = Snapshot.__new__(Snapshot)
        vars(snapshot).update(vars(self), commit=commit)
        return snapshot

    @property
    def manifest(self) -> Manifest:
        """The manifest: schema, fragments, config."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """Version number, from the manifest."""
        return self.manifest.version

    @property
    def branch(self) -> str | None:
        """Branch of the version; None on the main line."""
        return self.manifest.branch

    @computed_once
    def main_location(self) -> Location:
        """Root of the table's main line, where tags and branches are recorded."""
        if self.branch is None:
            return self.location
        suffix = f"/{layout.branch_root(self.branch)}"
        return replace(self.location, uri=self.location.uri.removesuffix(suffix))

    @computed_once
    def files(self) -> TableFiles:
        """Locations of the version's files."""
        return TableFiles(root=self.location, bases=self.manifest.base_paths)

    @computed_once
    def manifest_at(self) -> FileAt:
        """Location of the manifest."""
        return FileAt(root=self.location, path=layout.manifest(self.name.name))

    @computed_once
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index entries of the version."""
        if self.file.index_section is None:
            return ()
        with errors.naming(self.location.uri, self.version):
            return index_meta.decode_section(self.file.index_section)

    @computed_once
    def state(self) -> TableState:
        """Manifest and index entries, as conflict rules and builders use them."""
        return TableState(manifest=self.manifest, indices=self.indices)

    @computed_once
    def transaction(self) -> Transaction | None:
        """The transaction of the version; None if it was not recorded or was removed."""
        return self.transaction_in(self.location.store)

    def transaction_in(self, store: ObjectStore) -> Transaction | None:
        """Read the transaction: the inline copy, else its file in a store."""
        data = self.file.inline_transaction
        with errors.naming(self.location.uri, self.version):
            if data is None:
                data = self._transaction_file(store)
            return None if data is None else decode_transaction(data)

    def with_schema(self, schema: Schema) -> Snapshot:
        """Return the version with a projected schema, for scans."""
        manifest = replace(self.manifest, schema=schema)
        return replace(self, file=replace(self.file, manifest=manifest))

    def _transaction_file(self, store: ObjectStore) -> bytes | None:
        if not self.manifest.transaction_file:
            return None
        path = layout.transaction(confined_path(self.manifest.transaction_file))
        try:
            return store.get(path)
        except errors.ObjectNotFoundError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    """A root, its store, and its commit handler.

    `creates_hint` is set where readers need the hint to find the newest version quickly.
    """

    location: Location
    store: ObjectStore
    handler: CommitHandler
    creates_hint: bool = False

    def load(self, name: ManifestName) -> Snapshot:
        """Read a version of the line."""
        return Snapshot.load(self.location, name, store=self.store)

    def has_next(self, name: ManifestName) -> bool:
        """Whether the version after a known one exists, with one call.

        False does not rule out newer versions of another naming scheme.
        """
        return self.store.exists(layout.manifest(manifest_name(name.version + 1, name.naming)))


def open_line(location: Location) -> VersionLine:
    """Return the line at a root; repeated calls are cheap."""
    store = location.store
    match location.scheme:
        case "file" | "memory":
            return VersionLine(location=location, store=store, handler=ConditionalPut(store=store))
        case "s3+ddb":
            external = open_dynamodb(location)
            handler = ExternalHandler(store=store, external=external, ids=location.session.ids)
            return VersionLine(location=location, store=store, handler=handler)
        case _:
            return VersionLine(
                location=location,
                store=store,
                handler=ConditionalPut(store=store),
                creates_hint=not abilities(location).lists_in_order,
            )


def list_versions(location: Location) -> list[ManifestName]:
    """Return all versions of the main line, oldest first."""
    return open_line(location).handler.every()


def latest_version(location: Location) -> ManifestName:
    """Find the newest version of the main line."""
    name = open_line(location).handler.latest()
    if name is None:
        problem = f"Dataset at path {location.uri} was not found: it is not a Lance table"
        raise errors.TableNotFoundError(problem, table=location.uri)
    return name


def has_table(location: Location) -> bool:
    """Whether a location has a table: at least one version of the main line."""
    return open_line(location).handler.latest() is not None


def find_version(location: Location, version: int) -> ManifestName:
    """Find the manifest of a version, whichever way it is named."""
    name = open_line(location).handler.find(version)
    if name is not None:
        return name
    if version > 0 and is_detached(version):
        raise errors.VersionNotFoundError("no such version", table=location.uri, version=version)
    latest = latest_version(location).version
    problem = f"version {version} was not found; the latest is {latest}"
    action = _why_missing(location, version) if version < latest else None
    raise errors.VersionNotFoundError(problem, table=location.uri, version=version, action=action)


def _why_missing(location: Location, version: int) -> str:
    if version < 1:
        return "Versions are numbered from 1."
    left = [name.version for name in list_versions(location)]
    before = [number for number in left if number < version]
    after = min(number for number in left if number > version)
    if before:
        return (
            f"It was removed by cleanup; the nearest versions left are {max(before)} and {after}."
        )
    return (
        f"The oldest version is {after}: those before it were removed by cleanup, or belong to the "
        "table or branch that this one was made from."
    )


def quarantine(line: VersionLine, name: ManifestName) -> str:
    """Move a manifest out of the version line and return its new path.

    The version number becomes free, and the next commit may take it.
    """
    if not isinstance(line.handler, ConditionalPut):
        raise errors.UnsupportedError(
            "the versions of this table are also recorded in an external manifest store",
            table=line.location.uri,
            version=name.version,
            action="Repair the manifest by hand, in the object store and in the manifest store.",
        )
    copy = f"{layout.DAMAGED}/{name.name}"
    line.store.copy(layout.manifest(name.name), copy)
    line.store.delete(layout.manifest(name.name))
    return copy


def update_hint(line: VersionLine, version: int) -> None:
    """Raise the hint to a committed version, where readers use one; failures are ignored."""
    if is_detached(version):
        return
    with suppress(errors.LanceTableError):
        newest = _known(line)
        if newest is None and not line.creates_hint:
            return
        if (newest or 0) < version:
            # A hint that a crash loses or damages is ignored, so it is not synced.
            _put(line, version, durable=False)


def correct_hint(line: VersionLine, version: int) -> None:
    """Set the hint to a version, even a lower one."""
    _put(line, version, durable=True)


def _put(line: VersionLine, version: int, *, durable: bool) -> None:
    body = json.dumps({"version": version}, separators=(",", ":"))
    line.store.put(layout.VERSION_HINT, body.encode(), durable=durable)


def _known(line: VersionLine) -> int | None:
    """Return the version of the hint, 0 when it is invalid, None when there is none."""
    try:
        return hinted_version(line.store.get(layout.VERSION_HINT)) or 0
    except errors.ObjectNotFoundError:
        return None


def rewrite_transaction_file(line: VersionLine, name: ManifestName) -> None:
    """Write the transaction file of a manifest from its inline copy, if it has one."""
    loaded = line.load(name)
    file, data = loaded.state.manifest.transaction_file, loaded.file.inline_transaction
    if file and data is not None:
        line.store.put(layout.transaction(confined_path(file)), data)


Document = TypeVar("Document", Tag, Branch)


def list_tags(main: Location) -> dict[str, Tag]:
    """Return all tags by name, sorted."""
    return _listed(main, layout.TAGS, refs.decode_tag)


def load_tag(main: Location, name: str) -> Tag:
    """Read one tag."""
    with errors.naming(main.uri):
        ensure_tag_name(name)
    return _loaded(main, layout.tag(name), f"tag {name}", refs.decode_tag)


def list_branches(main: Location) -> dict[str, Branch]:
    """Return all branches by name, sorted."""
    return _listed(main, layout.BRANCHES, refs.decode_branch)


def load_branch(main: Location, name: str) -> Branch:
    """Read one branch."""
    with errors.naming(main.uri):
        ensure_branch_name(name)
    return _loaded(main, layout.branch(name), f"branch {name}", refs.decode_branch)


def branch_location(main: Location, name: str | None) -> Location:
    """Return the root of a branch; the table's own root for the main line."""
    return main if name in (None, "main") else main.child(layout.branch_root(name or ""))


def _listed(
    main: Location, folder: str, decode: Callable[[bytes], Document]
) -> dict[str, Document]:
    named = sorted(ref_names(main.store, folder).items())
    return {name: _loaded(main, path, path, decode) for name, path in named}


def _loaded(main: Location, path: str, what: str, decode: Callable[[bytes], Document]) -> Document:
    store = main.store
    with errors.naming(main.uri):
        try:
            return decode(store.get(path))
        except errors.ObjectNotFoundError as error:
            raise missing_ref(store, path, what) from error


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECONDS = re.compile(r"[.,]\d{3}(?!\d)")


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest version."""


@dataclass(frozen=True, slots=True)
class AtVersion:
    """A version by number."""

    version: int


@dataclass(frozen=True, slots=True)
class AtTag:
    """The version of a tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class OnBranch:
    """A version of a branch; by default its newest."""

    branch: str | None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AsOf:
    """The newest version committed up to a time, the whole of that microsecond included.

    Manifests have nanoseconds, and no face prints more than microseconds.
    """

    time_us: int


Reference = Latest | AtVersion | AtTag | OnBranch | AsOf


def open_snapshot(
    location: Location, reference: Reference, *, main: Location | None = None
) -> Snapshot:
    """Open a version; `main` is the table's root when `location` is that of a branch."""
    try:
        snapshot = _opened(location, reference, main or location)
    except errors.LanceTableError:
        _report(location, reference, status="error")
        raise
    _report(location, reference, status="success", version=snapshot.version)
    return snapshot


def _report(location: Location, reference: Reference, **facts: object) -> None:
    if events.are_heard():
        ref = "None" if isinstance(reference, Latest) else reference
        events.emit(events.DATASET, event="loading", uri=location.uri, target_ref=ref, **facts)


def _opened(location: Location, reference: Reference, root: Location) -> Snapshot:
    match reference:
        case Latest():
            return Snapshot.load(location, latest_version(location))
        case AtVersion(version):
            return Snapshot.load(location, find_version(location, version))
        case AtTag(tag):
            tag_entry = load_tag(root, tag)
            return _on_branch(root, tag_entry.branch, tag_entry.version)
        case OnBranch(branch, version):
            return _on_branch(root, branch, version)
        case AsOf(time_us):
            return _as_of(location, time_us)
        case _:
            assert_never(reference)


def open_existing(location: Location, branch: str | None = None) -> Snapshot | None:
    """Open the newest version of a table or of its branch; None if there is no table.

    A branch must exist.
    """
    if branch is not None:
        return open_snapshot(location, OnBranch(branch))
    try:
        return open_snapshot(location, Latest())
    except errors.TableNotFoundError:
        return None


def time_reference(when: datetime | str) -> AsOf:
    """Convert a time, or its ISO 8601 text, to a reference; without a time zone it is local.

    Text with milliseconds includes the whole millisecond.
    """
    if isinstance(when, datetime):
        return AsOf((when.astimezone(UTC) - _EPOCH) // _MICROSECOND)
    try:
        time_us = time_reference(datetime.fromisoformat(when.strip())).time_us
    except ValueError as error:
        action = "Write it as 2026-01-31T12:00:00Z."
        raise errors.InvalidRequestError(f"{when!r} is not a valid time", action=action) from error
    return AsOf(time_us + 999 if _MILLISECONDS.search(when) else time_us)


def _on_branch(root: Location, branch: str | None, version: int | None) -> Snapshot:
    if branch not in (None, "main"):
        load_branch(root, branch or "")
    place = branch_location(root, branch)
    return open_snapshot(place, Latest() if version is None else AtVersion(version), main=root)


def _as_of(location: Location, time_us: int) -> Snapshot:
    """Search backwards from the newest version for the first one that is old enough."""
    oldest: Snapshot | None = None
    for name in reversed(list_versions(location)):
        snapshot = Snapshot.load(location, name)
        written_ns = snapshot.manifest.timestamp_ns
        if written_ns is not None and written_ns // 1000 <= time_us:
            return snapshot
        oldest = snapshot
    if oldest is None:
        latest_version(location)
    since = f": the oldest was written {oldest.manifest.timestamp}" if oldest else ""
    problem = f"the time is earlier than the first version of this dataset{since}"
    raise errors.VersionNotFoundError(problem, table=location.uri)
