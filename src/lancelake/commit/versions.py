"""Versions of a table or branch: where they are committed, the latest, all, one by number."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from lancelake.commit.external_store import ExternalHandler, open_dynamodb
from lancelake.commit.handler import CommitHandler, ConditionalPut, hinted_version
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    LanceTableError,
    ObjectNotFoundError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.layout import ManifestName, manifest_name
from lancelake.storage.cloud import abilities
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore, confined_path


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
        raise TableNotFoundError(problem, table=location.uri)
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
        raise VersionNotFoundError("no such version", table=location.uri, version=version)
    latest = latest_version(location).version
    problem = f"version {version} was not found; the latest is {latest}"
    action = _why_missing(location, version) if version < latest else None
    raise VersionNotFoundError(problem, table=location.uri, version=version, action=action)


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
        raise UnsupportedError(
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
    with suppress(LanceTableError):
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
    except ObjectNotFoundError:
        return None


def rewrite_transaction_file(line: VersionLine, name: ManifestName) -> None:
    """Write the transaction file of a manifest from its inline copy, if it has one."""
    loaded = line.load(name)
    file, data = loaded.state.manifest.transaction_file, loaded.file.inline_transaction
    if file and data is not None:
        line.store.put(layout.transaction(confined_path(file)), data)
