"""How do readers find the newest version fast where a store lists in no order?"""

from __future__ import annotations

import json
from contextlib import suppress

from lancelake.commit.lookup import hinted_version
from lancelake.commit.version_line import VersionLine
from lancelake.errors import LanceTableError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.ids import is_detached


def update_hint(line: VersionLine, version: int) -> None:
    """Raise the hint to a version that landed, where readers use one; failures do not matter."""
    if is_detached(version):
        return
    with suppress(LanceTableError):
        known = _known(line)
        if known is None and not line.creates_hint:
            return
        if (known or 0) < version:
            correct_hint(line, version)


def correct_hint(line: VersionLine, version: int) -> None:
    """Let the hint name a version, whatever it named before."""
    body = json.dumps({"version": version}, separators=(",", ":"))
    line.store.put(layout.VERSION_HINT, body.encode())


def _known(line: VersionLine) -> int | None:
    """Return what the hint says, 0 for nonsense; None when there is none."""
    try:
        return hinted_version(line.store.get(layout.VERSION_HINT)) or 0
    except ObjectNotFoundError:
        return None
