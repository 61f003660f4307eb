"""The pages for contributors name files and targets that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "AGENTS.md")
FOLDERS = tuple(
    f"{path.name}/" for path in ROOT.iterdir() if path.is_dir() and path.name != ".interop"
)
PACKAGES = tuple(f"{path.name}/" for path in (ROOT / "src" / "lancelake").iterdir())


def quoted(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8"))


def exists(path: str) -> bool:
    # What a recipe adds has a name in angle brackets, and its folder exists.
    known = path.partition("<")[0].rpartition("/")[0] if "<" in path else path
    root = ROOT / "src" / "lancelake" if path.startswith(PACKAGES) else ROOT
    return any(root.glob(known.rstrip("/"))) or (ROOT / known).exists()


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    paths = [text for text in quoted(page) if text.startswith((*FOLDERS, *PACKAGES))]
    paths = [path for path in paths if " " not in path]
    assert [path for path in paths if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES)
def test_targets_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {text.split()[1] for text in quoted(page) if re.match(r"make [a-z]", text)}
    missing = [
        t
        for t in sorted(targets)
        if not re.search(rf"^[^#\n]*\b{re.escape(t)}\b.*:", makefile, re.M)
    ]
    assert missing == []
