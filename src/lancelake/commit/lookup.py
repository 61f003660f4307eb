"""Lookup of manifests in a store: all versions, one version, the newest."""

from __future__ import annotations

import json

from lancelake.errors import CorruptTableError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import (
    ManifestName,
    ManifestNaming,
    manifest_name,
    parse_manifest_name,
)
from lancelake.storage.store import ObjectStore

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
        raise CorruptTableError(f"manifest name {name} is not well formed")
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
    except ObjectNotFoundError:
        return None
    found = None if hint is None else manifest_of(store, hint)
    for _ in range(_MAX_PROBES):
        if found is None:
            return None
        name = manifest_name(found.version + 1, found.naming)
        if not store.exists(layout.manifest(name)):
            return found
        found = parse_manifest_name(name)
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
