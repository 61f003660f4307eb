"""How does the file with a version's transaction come back when it is gone?"""

from __future__ import annotations

from lancelake.commit.version_line import VersionLine
from lancelake.format import layout
from lancelake.format.names import ManifestName
from lancelake.storage.confined import confined_path


def rewrite_transaction_file(line: VersionLine, name: ManifestName) -> None:
    """Write the file that a manifest names from the copy that it holds; nothing without one."""
    loaded = line.load(name)
    file, data = loaded.state.manifest.transaction_file, loaded.file.inline_transaction
    if file and data is not None:
        line.store.put(layout.transaction(confined_path(file)), data)
