"""Which page tells what happens to concurrent changes? Writes docs/conflicts.md from the rules."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from lancelake.txn.matrix import markdown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "conflicts.md"
DIFFERENCES = ROOT / "tests" / "interop" / "verdicts" / "differences.toml"

INTRODUCTION = """\
# Concurrent changes

Two writers may prepare changes on the same version of a table. One commits first. Whether the
other one, *mine*, can still be committed after *theirs* depends on what both do:

| Mark | What becomes of mine |
|---|---|
| · | Both are kept: mine is committed on top of theirs. |
| R | Mine has to be done again, on the newest version (`RetryableConflictError`). |
| X | Mine contradicts theirs, and someone has to decide (`IncompatibleConflictError`). |

Several marks in a cell mean that it depends on the details, which are listed below the table. A
delete or an update that is committed on top of another is joined with it row by row: when both
took the same row, mine has to be done again after all. Rows that an append or an update added are
examined for the keys that an upsert inserts, and only when one of them is there the upsert has to
be done again; the examples, which have no files, show that case.

The table is computed from the rules that commits follow, on small examples of each operation;
fragment, index and region names below are those of the examples. `lancelake matrix MINE THEIRS`
shows every example of a pair, and `lancelake matrix --output json` the whole for programs. This
page is written by `scripts/conflicts_page.py`.

## The matrix

"""
RELEASES = """
## Differences from official releases

Pairs of many changes were put to official releases, which committed them or refused to. Where our
answer is another one, it is listed here. [Decision 16](decisions/0016-verdict-reference.md) says
which release we follow, and why. *ok*: committed; *retry*: to be done again; *conflict*: refused;
*invalid*: fails with an error of another kind.
"""


def page() -> str:
    """Return the page as it has to be."""
    entries = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["difference"]
    releases = dict.fromkeys(entry["release"] for entry in entries)
    parts = [_release(name, [e for e in entries if e["release"] == name]) for name in releases]
    return INTRODUCTION + markdown() + RELEASES + "".join(parts)


def _release(name: str, entries: list[dict[str, Any]]) -> str:
    """Return the table of one release; the entries are as TOML has them."""
    lines = [
        "",
        f"### {name}",
        "",
        "| Mine | Theirs | Ours | Official | Why |",
        "|---|---|---|---|---|",
    ]
    for entry in entries:
        sides = [_names(entry[side]) for side in ("mine", "theirs")]
        cells = [*sides, entry["ours"], entry["official"], entry["reason"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _names(patterns: list[str]) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns)


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page(), encoding="utf-8") else 1)
