"""Running of the code on a page, and comparison with the output that the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r'(?:\n+^```text title="output"\n(?P<output>.*?)^```$)?',
    re.DOTALL | re.MULTILINE,
)


def run_page(path: Path) -> int:
    """Run the blocks of a page in order; return how many outputs were compared."""
    names: dict[str, object] = {"__name__": path.stem}
    blocks = list(BLOCK.finditer(path.read_text(encoding="utf-8")))
    assert blocks
    compared = 0
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], path.name, "exec"), names)
        if block["output"] is not None:
            assert printed.getvalue() == block["output"]
            compared += 1
    return compared
