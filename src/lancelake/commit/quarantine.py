"""Quarantine of an unreadable manifest, outside of the version line."""

from __future__ import annotations

from lancelake.commit.conditional_put import ConditionalPut
from lancelake.commit.version_line import VersionLine
from lancelake.errors import UnsupportedError
from lancelake.format import layout
from lancelake.format.names import ManifestName


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
    kept = f"{layout.DAMAGED}/{name.name}"
    line.store.copy(layout.manifest(name.name), kept)
    line.store.delete(layout.manifest(name.name))
    return kept
