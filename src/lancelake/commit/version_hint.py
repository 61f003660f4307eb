"""Version hint: a file that leads to the newest version in stores without ordered listing."""

from __future__ import annotations

import json
from contextlib import suppress

from lancelake.commit.lookup import hinted_version
from lancelake.commit.version_line import VersionLine
from lancelake.errors import LanceTableError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.ids import is_detached


def update_hint(line: VersionLine, version: int) -> None:
    """Raise the hint to a committed version, where readers use one; failures are ignored."""
    if is_detached(version):
        return
    with suppress(LanceTableError):
        known = _known(line)
        if known is None and not line.creates_hint:
            return
        if (known or 0) < version:
            # A hint that a crash loses or damages is ignored, so it is not synced.
            _put(line, version, durable=False)


def correct_hint(line: VersionLine, version: int) -> None:
    """Set the hint to a version, even a lower one."""
    _put(line, version, durable=True)


def _put(line: VersionLine, version: int, *, durable: bool) -> None:
    body = json.dumps({"version": version}, separators=(",", ":"))
    line.store.put(layout.VERSION_HINT, body.encode(), durable=durable)


def _known(line: VersionLine) -> int | None:
    """Return the version of the hint, 0 when it is invalid, None when there is none."""
    try:
        return hinted_version(line.store.get(layout.VERSION_HINT)) or 0
    except ObjectNotFoundError:
        return None
