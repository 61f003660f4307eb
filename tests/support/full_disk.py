"""Disks without room."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let every write of a file by this process fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def no_room_below(folder: Path) -> Iterator[None]:
    """Let writes of files below a folder fail; a Spark driver needs files of its own elsewhere."""
    write = os.write

    def limited(fd: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(folder):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", limited)
        yield
