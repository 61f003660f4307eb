"""Detect files that tests leave in the repository's root, the working directory of most of them."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path


class CleanRoot:
    """The entries of a folder, and those that have appeared since."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ignored = folder / ".gitignore"
        lines = ignored.read_text(encoding="utf-8").split() if ignored.exists() else []
        self._ignored = [line.strip("/") for line in lines]
        self._known = {entry.name for entry in folder.iterdir()}

    def left(self) -> list[str]:
        """Return the names of new entries, each once; ignored ones and empty folders are none."""
        found = sorted(
            entry.name
            for entry in self._folder.iterdir()
            if entry.name not in self._known
            and not any(fnmatch(entry.name, pattern) for pattern in self._ignored)
            and _has_file(entry)
        )
        self._known.update(found)
        return found


def _has_file(entry: Path) -> bool:
    return not entry.is_dir() or any(below.is_file() for below in entry.rglob("*"))
