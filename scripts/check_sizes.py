"""Check the length of modules and functions; exceptions have a reason.

Every line of a module counts. The docstring of a function does not count towards the function: the
arguments and examples of a public method make it no harder to read.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 600
FUNCTION_LINES = 60
GENERATED = Path("src/lancelake/proto")


def main(root: Path) -> int:
    """Print every finding under `root`; return 1 if there is one."""
    reasons = tomllib.loads((root / "sizes.toml").read_text(encoding="utf-8"))
    long = dict(too_long(root))
    findings = [f"{name}: {size}" for name, size in long.items() if not reasons.get(name)]
    findings += [f"{name}: listed in sizes.toml, but short" for name in reasons.keys() - long]
    for finding in sorted(findings):
        print(finding)
    return 1 if findings else 0


def too_long(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the size of each module and function over its limit."""
    for path in sorted((root / "src").rglob("*.py")):
        name = path.relative_to(root)
        if name.is_relative_to(GENERATED):
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = len(text.splitlines())
        if lines > MODULE_LINES:
            yield name.as_posix(), f"{lines} lines, at most {MODULE_LINES}"
        for function, length in functions(tree, prefix=""):
            if length > FUNCTION_LINES:
                yield f"{name.as_posix()}::{function}", f"{length} lines, at most {FUNCTION_LINES}"


def functions(node: ast.AST, *, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted name and the number of lines of each function below `node`."""
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (child.end_lineno or child.lineno) - child.lineno + 1
            yield inner.removesuffix("."), lines - documented(child)
        yield from functions(child, prefix=inner)


def documented(node: ast.AST) -> int:
    """Count the lines of docstrings in `node`, but for the first line of each."""
    return sum(
        (each.body[0].end_lineno or 0) - each.body[0].lineno
        for each in ast.walk(node)
        if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(each, clean=False) is not None
    )


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
