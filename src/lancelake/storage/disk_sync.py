"""Is what was written to local disk on the disk when a call returns?

It is, so that a machine that stops loses nothing that was acknowledged. Whoever does not need that
sets the environment variable `LANCELAKE_FSYNC` to `off` and waits less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_choice = {"waits": os.environ.get("LANCELAKE_FSYNC", "on") != "off"}


def sync(fd: int) -> None:
    """Wait until what was written to an open file or folder is on disk, unless told otherwise."""
    if _choice["waits"]:
        os.fsync(fd)


@contextmanager
def waiting(*, waits: bool) -> Iterator[None]:
    """Choose for a while, in all threads, whether to wait."""
    before = _choice["waits"]
    _choice["waits"] = waits
    try:
        yield
    finally:
        _choice["waits"] = before
