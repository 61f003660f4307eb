"""Restore the newest consistent version."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.quarantine import quarantine
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import open_line
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    StorageUnavailableError,
    VersionNotFoundError,
)
from lancelake.format.names import ManifestName
from lancelake.storage.location import Location
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Severity
from lancelake.table.check.version_lines import CheckedLine
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices
from lancelake.table.refs import list_tags
from lancelake.table.repair.preview import findings
from lancelake.table.restore import restore
from lancelake.txn import migrations


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyVersion:
    """The newest consistent version, and those after it.

    `unreadable` are the newest versions if nothing can be committed after them: their manifests are
    quarantined, and the number of the oldest is assigned again.
    """

    target: Snapshot
    newer: tuple[ManifestName, ...]
    unreadable: tuple[ManifestName, ...]

    @property
    def is_needed(self) -> bool:
        """Whether the newest version is not consistent."""
        return bool(self.newer)


def find_healthy(location: Location, *, data: bool = False) -> HealthyVersion:
    """Find the newest version without errors; with `data`, every value is read."""
    sizes = FileSizes()
    newer: list[ManifestName] = []
    unreadable: list[ManifestName] = []
    for name in CheckedLine.load(location, branch=None).newest_first:
        snapshot = _loaded(location, name)
        if snapshot is None:
            if len(unreadable) == len(newer):
                unreadable.append(name)
        elif not any(
            f.severity is Severity.ERROR for f in findings(snapshot, sizes, {}, data=data)
        ):
            return HealthyVersion(target=snapshot, newer=tuple(newer), unreadable=tuple(unreadable))
        newer.append(name)
    problem = "the table has no consistent version"
    raise VersionNotFoundError(
        problem, table=location.uri, action="Restore its files from a backup."
    )


def restore_healthy(healthy: HealthyVersion, choices: CommitChoices = DEFAULT_CHOICES) -> Snapshot:
    """Restore the version; unreadable manifests are moved to `_damaged` first."""
    if not healthy.is_needed:
        return healthy.target
    _ensure_untagged(healthy)
    line = open_line(healthy.target.location)
    for name in healthy.unreadable:
        quarantine(line, name)
    return restore(healthy.target, choices)


def _loaded(location: Location, name: ManifestName) -> Snapshot | None:
    """Load a version as a commit would; None if that fails."""
    try:
        migrations.wanted(open_line(location).load(name).state)
        return Snapshot.load(location, name)
    except StorageUnavailableError:
        raise
    except LanceTableError:
        return None


def _ensure_untagged(healthy: HealthyVersion) -> None:
    """Refuse to assign a version number again that a tag refers to."""
    gone = {name.version for name in healthy.unreadable}
    here = healthy.target.branch
    for tag, named in list_tags(healthy.target.main_location).items():
        if named.version in gone and named.branch in (here, here or "main"):
            raise InvalidRequestError(
                f"tag {tag} refers to version {named.version}, whose manifest cannot be read",
                table=healthy.target.location.uri,
                action="Delete the tag, or move it to another version.",
            )
