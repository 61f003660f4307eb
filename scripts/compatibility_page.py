"""Generate the tables of docs/compatibility.md from the tests with official releases."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.golden.test_historic_tables import TABLES
from tests.support.official import RELEASES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
INTEROP = ROOT / "tests" / "interop"
# Fixtures of the tests, and the releases that they stand for.
FIXTURES = {
    "official": RELEASES,
    "officials": RELEASES,
    "official_4": ("4.0.2",),
    "official_14": ("14.0.2",),
}
_PART = "<!-- generated: {name} -->\n"
_END = "<!-- end of generated -->"


def page(text: str) -> str:
    """Return the text of the page with its generated parts as they have to be."""
    for name, part in (("suites", suites()), ("tables", tables()), ("names", names())):
        start = _PART.format(name=name)
        pattern = re.compile(re.escape(start) + r".*?" + re.escape(_END), re.DOTALL)
        found = pattern.findall(text)
        if len(found) != 1:
            raise ValueError(f"the page has {len(found)} parts named {name!r}")
        text = text.replace(found[0], f"{start}{part}{_END}")
    return text


def suites() -> str:
    """Return a table of the test suites, the releases that each runs with, and its tests."""
    rows = [f"| Compared | {' | '.join(RELEASES)} | Tests |", "|---" * (len(RELEASES) + 2) + "|"]
    for path in sorted(INTEROP.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = set(_releases(tree))
        if used:
            title = (ast.get_docstring(tree) or "").split("\n")[0].removesuffix(".")
            marks = " | ".join("yes" if release in used else "" for release in RELEASES)
            rows.append(f"| {title} | {marks} | {_count(tree)} |")
    return "\n".join(rows) + "\n"


def tables() -> str:
    """Return a table of the tables of early releases that the tests read."""
    rows = ["| Table | Data files | Versions | Indices |", "|---|---|---|---|"]
    for each in TABLES:
        indices = ", ".join(f"`{name}`" for name in each.indices)
        rows.append(f"| `{each.path}` | {each.storage} | {len(each.rows)} | {indices} |")
    return "\n".join(rows) + "\n"


def names() -> str:
    """Return a table of the public names of pylance that differ, with reasons."""
    text = (INTEROP / "surface_exceptions.toml").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {reason} |" for name, reason in tomllib.loads(text).items()]
    return "\n".join(["| Name | Reason |", "|---|---|", *rows]) + "\n"


def _releases(tree: ast.Module) -> Iterator[str]:
    """Yield the releases that the functions of a module ask for, by fixtures or by name."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) if name in FIXTURES:
                yield from FIXTURES[name]
            case ast.Constant(value=str(text)) if text in RELEASES:
                yield text
            case _:
                pass


def _count(tree: ast.Module) -> int:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return sum(1 for node in functions if node.name.startswith("test_"))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
