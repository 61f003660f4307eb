"""Restoring of a missing transaction file."""

from __future__ import annotations

from lancelake.commit.version_line import VersionLine
from lancelake.format import layout
from lancelake.format.names import ManifestName
from lancelake.storage.confined import confined_path


def rewrite_transaction_file(line: VersionLine, name: ManifestName) -> None:
    """Write the transaction file of a manifest from its inline copy, if it has one."""
    loaded = line.load(name)
    file, data = loaded.state.manifest.transaction_file, loaded.file.inline_transaction
    if file and data is not None:
        line.store.put(layout.transaction(confined_path(file)), data)
