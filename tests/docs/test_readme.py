"""The code in the README runs and prints what the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import run_page

README = Path(__file__).parents[2] / "README.md"
HOME = "https://github.com/lancelake/lancelake/blob/main/"


def test_readme_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(README) == 3


def test_readme_links_lead_to_files() -> None:
    """Links are absolute, since package indices show the README as well."""
    links = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    paths = [link.removeprefix(HOME) for link in links if link.startswith(HOME)]
    assert paths
    assert [path for path in paths if not (README.parent / path).exists()] == []
    assert [link for link in links if "://" not in link] == []
