"""Versions of a table and the names of their manifests."""

from __future__ import annotations

from lancelake.commit.version_line import open_line
from lancelake.errors import TableNotFoundError, VersionNotFoundError
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName
from lancelake.storage.location import Location


def list_versions(location: Location) -> list[ManifestName]:
    """Return all versions of the main line, oldest first."""
    return open_line(location).handler.every()


def latest_version(location: Location) -> ManifestName:
    """Find the newest version of the main line."""
    found = open_line(location).handler.latest()
    if found is None:
        problem = f"Dataset at path {location.uri} was not found: it is not a Lance table"
        raise TableNotFoundError(problem, table=location.uri)
    return found


def has_table(location: Location) -> bool:
    """Whether a location has a table: at least one version of the main line."""
    return open_line(location).handler.latest() is not None


def find_version(location: Location, version: int) -> ManifestName:
    """Find the manifest of a version, whichever way it is named."""
    found = open_line(location).handler.find(version)
    if found is not None:
        return found
    if is_detached(version):
        raise VersionNotFoundError("no such version", table=location.uri, version=version)
    latest = latest_version(location).version
    problem = f"version {version} was not found; the latest is {latest}"
    action = None
    if version < latest:
        oldest = min(name.version for name in list_versions(location))
        action = f"Older versions were removed by cleanup; the oldest version left is {oldest}."
    raise VersionNotFoundError(problem, table=location.uri, version=version, action=action)
