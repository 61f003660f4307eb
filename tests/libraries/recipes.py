"""The code on the page about other libraries, by library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


def run(title: str) -> dict[str, Any]:
    """Run the code below a title in the current folder; return its names."""
    section = _PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    code = section.partition("```py\n")[2].partition("```")[0]
    assert code, title
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, title, "exec"), names)
    return names
