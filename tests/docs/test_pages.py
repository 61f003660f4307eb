"""The code on the documentation pages runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import run_page

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path.name for path in DOCS.glob("*.md") if "```python\n" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / name)


def test_every_page_is_in_the_navigation() -> None:
    text = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", text))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert pages - listed == set()
