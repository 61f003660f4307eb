"""Which versions a table has, and where their manifests lie."""

from __future__ import annotations

import json

from lancelake.errors import (
    CorruptTableError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import (
    ManifestName,
    ManifestNaming,
    manifest_name,
    parse_manifest_name,
)
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore

_FIRST_NAMES = 16
_MAX_PROBES = 8
_HINT_NAME = layout.VERSION_HINT.rsplit("/", 1)[1]
# Lengths of current manifest names, detached ones and the hint; any other may be of the old scheme.
_CURRENT_LENGTHS = frozenset({29, 30, len(_HINT_NAME)})


def list_versions(location: Location) -> list[ManifestName]:
    """Return all versions of the main line, oldest first."""
    parsed = (parse_manifest_name(n) for n in open_store(location).list_names(layout.VERSIONS))
    named = [name for name in parsed if name is not None and not is_detached(name.version)]
    by_version = {name.version: name for name in sorted(named, key=_newest_scheme_last)}
    return [by_version[version] for version in sorted(by_version)]


def latest_version(location: Location) -> ManifestName:
    """Find the newest version of the main line."""
    store = open_store(location)
    found = _by_hint(store) or _by_first_names(store) or _by_listing(store)
    if found is None:
        problem = f"Dataset at path {location.uri} was not found: no Lance table lies there"
        raise TableNotFoundError(problem, table=location.uri)
    return found


def find_version(location: Location, version: int) -> ManifestName:
    """Find the manifest of a version, whichever way it is named."""
    store = open_store(location)
    found = _existing(store, version)
    if found is not None:
        return found
    if not is_detached(version):
        latest = latest_version(location)
        problem = f"version {version} was not found; the latest is {latest.version}"
        raise VersionNotFoundError(problem, table=location.uri, version=version)
    raise VersionNotFoundError("no such version", table=location.uri, version=version)


def _newest_scheme_last(name: ManifestName) -> bool:
    return name.naming is ManifestNaming.V2


def _by_hint(store: ObjectStore) -> ManifestName | None:
    """Start from the hint that some writers leave; it may be old, but never too new."""
    try:
        hint = json.loads(store.get(layout.VERSION_HINT))["version"]
        found = _existing(store, hint) if isinstance(hint, int) and hint > 0 else None
    except (ObjectNotFoundError, ValueError, KeyError, TypeError):
        return None
    for _ in range(_MAX_PROBES):
        if found is None:
            return None
        name = manifest_name(found.version + 1, found.naming)
        if not store.exists(layout.manifest(name)):
            return found
        found = parse_manifest_name(name)
    return None


def _by_first_names(store: ObjectStore) -> ManifestName | None:
    """On a store that lists in order, the newest of the current scheme comes first."""
    names = store.smallest_names(layout.VERSIONS, limit=_FIRST_NAMES)
    parsed = [parse_manifest_name(name) for name in names or ()]
    first = next((name for name in parsed if name is not None), None)
    if first is None or first.naming is not ManifestNaming.V2 or is_detached(first.version):
        return None
    return first


def _by_listing(store: ObjectStore) -> ManifestName | None:
    names = store.list_names(layout.VERSIONS)
    if set(map(len, names)) <= _CURRENT_LENGTHS:
        # Current names count downwards, so the smallest is the newest.
        newest = parse_manifest_name(min(names, default=""))
        if newest is not None and not is_detached(newest.version):
            return newest
    parsed = (parse_manifest_name(name) for name in names)
    named = [name for name in parsed if name is not None and not is_detached(name.version)]
    return max(named, key=lambda name: name.version, default=None)


def _existing(store: ObjectStore, version: int) -> ManifestName | None:
    if not 0 < version < 1 << 64:
        return None
    for naming in (ManifestNaming.V2, ManifestNaming.V1):
        name = manifest_name(version, naming)
        if store.exists(layout.manifest(name)):
            parsed = parse_manifest_name(name)
            if parsed is None:
                raise CorruptTableError(f"manifest name {name} is not well formed")
            return parsed
    return None
