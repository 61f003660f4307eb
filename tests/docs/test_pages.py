"""The code on the documentation pages runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        "changes.md",
        "cleanup.md",
        "compaction.md",
        "optimize.md",
        "repair.md",
        "rows.md",
        "search.md",
    ],
)
def test_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = PYTHON_BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": name}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
