"""How is a manifest that nobody can read taken out of the way, without losing it?"""

from __future__ import annotations

from lancelake.commit.conditional_put import ConditionalPut
from lancelake.commit.version_line import VersionLine
from lancelake.errors import UnsupportedError
from lancelake.format import layout
from lancelake.format.names import ManifestName


def set_aside(line: VersionLine, name: ManifestName) -> str:
    """Move a manifest out of the line of versions and return where it lies now.

    Its number is free then, and the next commit may take it.
    """
    if not isinstance(line.handler, ConditionalPut):
        raise UnsupportedError(
            "versions of this table are recorded outside of its store, too",
            table=line.location.uri,
            version=name.version,
            action="Set the manifest right by hand, in the store and in the record of versions.",
        )
    kept = f"{layout.DAMAGED}/{name.name}"
    line.store.copy(layout.manifest(name.name), kept)
    line.store.delete(layout.manifest(name.name))
    return kept
