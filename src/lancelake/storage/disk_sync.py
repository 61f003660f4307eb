"""Durability of writes to local disk (fsync).

Files are synced before a call returns, so that a crash of the machine loses no acknowledged
write. The environment variable `LANCELAKE_FSYNC=off` disables this for speed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_choice = {"waits": os.environ.get("LANCELAKE_FSYNC", "on") != "off"}


def waits() -> bool:
    """Whether writes wait for the disk."""
    return _choice["waits"]


def sync(fd: int) -> None:
    """Sync an open file or folder to disk, unless that is disabled."""
    if _choice["waits"]:
        os.fsync(fd)


@contextmanager
def waiting(*, waits: bool) -> Iterator[None]:
    """Enable or disable syncing in all threads within a `with` block."""
    before = _choice["waits"]
    _choice["waits"] = waits
    try:
        yield
    finally:
        _choice["waits"] = before
