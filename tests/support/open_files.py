"""Files that this process has open."""

from __future__ import annotations

import contextlib
from pathlib import Path


def open_files() -> set[str]:
    """Return their paths as the system shows them; removed ones end with `(deleted)`."""
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(fd.readlink()))
    return found


def open_removed_files(folder: Path) -> list[str]:
    """Return the removed files below a folder that are still open."""
    return sorted(
        path
        for path in open_files()
        if path.startswith(f"{folder}/") and path.endswith(" (deleted)")
    )
