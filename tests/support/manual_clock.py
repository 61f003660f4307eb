"""Clock that tests move, and file ages that follow it."""

from __future__ import annotations

import os
from pathlib import Path


class ManualClock:
    """A clock that stands still until a test moves it; the two times can be moved apart."""

    def __init__(self, wall_s: float = 1_800_000_000.0) -> None:
        self.wall_s = wall_s
        self.steady_s = 0.0

    def now_ns(self) -> int:
        return int(self.wall_s * 1_000_000_000)

    def monotonic_s(self) -> float:
        return self.steady_s

    def sleep(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        """Move both times."""
        self.wall_s += seconds
        self.steady_s += seconds


def age_files(folder: Path, seconds: float) -> None:
    """Let every file below a folder be older than it is."""
    for path in folder.rglob("*"):
        if path.is_file():
            found = path.stat()
            os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))
