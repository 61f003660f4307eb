"""Publishing versions: the port, the latest version, a conditional put, a lock."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from lancelake import errors
from lancelake.format import layout
from lancelake.format.layout import (
    ManifestName,
    ManifestNaming,
    is_detached,
    manifest_name,
    parse_manifest_name,
)
from lancelake.storage.store import ObjectStore


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """The version was free and is published."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The version exists: another writer's, or this one's from an attempt whose reply was lost."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store failed, so the version may or may not be published."""

    cause: errors.StorageError


Outcome = PublishedVersion | Taken | Unknown


class CommitHandler(Protocol):
    """Publishes and finds the versions of one line, stored below one root."""

    def create(self, version: int, name: str, data: bytes) -> Outcome:
        """Publish a manifest if its version is free; of several racing calls one succeeds."""

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version, whichever way it is named."""

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""


_FIRST_NAMES = 16
_MAX_PROBES = 8
_HINT_NAME = layout.VERSION_HINT.rsplit("/", 1)[1]
# Lengths of V2 manifest names, detached ones and the hint; other names may be of the V1 scheme.
_CURRENT_LENGTHS = frozenset({29, 30, len(_HINT_NAME)})


def every_manifest(store: ObjectStore) -> list[ManifestName]:
    """Return all versions of the main line, oldest first."""
    parsed = (parse_manifest_name(n) for n in store.list_names(layout.VERSIONS))
    named = [name for name in parsed if name is not None and not is_detached(name.version)]
    by_version = {name.version: name for name in sorted(named, key=_newest_scheme_last)}
    return [by_version[version] for version in sorted(by_version)]


def latest_manifest(store: ObjectStore) -> ManifestName | None:
    """Find the newest version of the main line."""
    return _by_hint(store) or _by_first_names(store) or _by_listing(store)


def manifest_of(store: ObjectStore, version: int) -> ManifestName | None:
    """Find the manifest of a version, whichever way it is named."""
    if not 0 < version < 1 << 64:
        return None
    for naming in (ManifestNaming.V2, ManifestNaming.V1):
        name = manifest_name(version, naming)
        if store.exists(layout.manifest(name)):
            return taken_apart(name)
    return None


def taken_apart(name: str) -> ManifestName:
    """Parse the name of a manifest."""
    parsed = parse_manifest_name(name)
    if parsed is None:
        raise errors.CorruptTableError(f"manifest name {name} is not well formed")
    return parsed


def hinted_version(data: bytes) -> int | None:
    """Parse the version hint; None when it is invalid."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, int) and 0 < version < 1 << 63 else None


def _newest_scheme_last(name: ManifestName) -> bool:
    return name.naming is ManifestNaming.V2


def _by_hint(store: ObjectStore) -> ManifestName | None:
    """Search from the version hint of some writers, which may be old but never too new."""
    try:
        hint = hinted_version(store.get(layout.VERSION_HINT))
    except errors.ObjectNotFoundError:
        return None
    base = None if hint is None else manifest_of(store, hint)
    for _ in range(_MAX_PROBES):
        if base is None:
            return None
        name = manifest_name(base.version + 1, base.naming)
        if not store.exists(layout.manifest(name)):
            return base
        base = parse_manifest_name(name)
    return None


def _by_first_names(store: ObjectStore) -> ManifestName | None:
    """Search by listing: in an ordered listing, the newest V2 name is the first."""
    names = store.smallest_names(layout.VERSIONS, limit=_FIRST_NAMES)
    parsed = [parse_manifest_name(name) for name in names or ()]
    first = next((name for name in parsed if name is not None), None)
    if first is None or first.naming is not ManifestNaming.V2 or is_detached(first.version):
        return None
    return first


def _by_listing(store: ObjectStore) -> ManifestName | None:
    names = store.list_names(layout.VERSIONS)
    if set(map(len, names)) <= _CURRENT_LENGTHS:
        # V2 names count downwards, so the smallest is the newest.
        newest = parse_manifest_name(min(names, default=""))
        if newest is not None and not is_detached(newest.version):
            return newest
    parsed = (parse_manifest_name(name) for name in names)
    named = [name for name in parsed if name is not None and not is_detached(name.version)]
    return max(named, key=lambda name: name.version, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalPut:
    """Publishes with a conditional put: the store decides which writer is first."""

    store: ObjectStore

    def create(self, version: int, name: str, data: bytes) -> Outcome:  # noqa: ARG002  # the name says it
        """Publish a manifest if its version is free."""
        try:
            self.store.create(layout.manifest(name), data)
        except errors.AlreadyExistsError:
            return Taken()
        except errors.StorageError as error:
            # A disk can fail after the rename, and a reply can be lost.
            return Unknown(error)
        return PublishedVersion()

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""
        return latest_manifest(self.store)

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version."""
        return manifest_of(self.store, version)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        return every_manifest(self.store)


CommitLock = Callable[[int], AbstractContextManager[Any]]
"""Called with the version to publish, and held meanwhile; raises `ConflictError` when taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedHandler:
    """Handler that holds a lock while it publishes; reads do not need it."""

    inner: CommitHandler
    lock: CommitLock

    def create(self, version: int, name: str, data: bytes) -> Outcome:
        """Publish a manifest while the lock is held."""
        stack = ExitStack()
        try:
            stack.enter_context(self.lock(version))
        except errors.ConflictError:
            return Taken()
        except Exception as error:
            problem = f"the commit lock for version {version} could not be acquired: {error}"
            raise errors.StorageError(problem, lock=repr(self.lock)) from error
        outcome: Outcome | None = None
        try:
            with stack:
                outcome = self.inner.create(version, name, data)
        except Exception as error:
            if outcome is None:
                raise
            # A version stays published even when the lock cannot be released.
            warnings.warn(
                f"the commit lock of version {version} was not released: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        if outcome is None:
            raise errors.StorageError(f"the commit lock suppressed the error for version {version}")
        return outcome

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""
        return self.inner.latest()

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version, whichever way it is named."""
        return self.inner.find(version)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        return self.inner.every()
