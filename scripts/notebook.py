"""Run the code of a notebook in an empty folder; compare its outputs and its page, or write them.

python scripts/notebook.py examples/tour.ipynb docs/tour.md           # 1 if anything differs
python scripts/notebook.py examples/tour.ipynb docs/tour.md --update  # write the outputs
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

_KINDS = {"text/plain": "__repr__", "text/html": "_repr_html_"}


def main() -> int:
    """Compare or write the outputs of one notebook."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    notebook = json.loads(options.notebook.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = run(notebook)
    if options.update:
        for cell, outputs in zip(code_cells(notebook), found, strict=True):
            cell["outputs"] = outputs
        options.notebook.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
        options.page.write_text(page(notebook), encoding="utf-8")
        return 0
    differing = [
        f"{''.join(cell['source'])}\n--- expected\n{cell['outputs']}\n--- found\n{outputs}"
        for cell, outputs in zip(code_cells(notebook), found, strict=True)
        if cell["outputs"] != outputs
    ]
    if options.page.read_text(encoding="utf-8") != page(notebook):
        differing.append(f"{options.page} is not what {options.notebook} gives")
    print("\n\n".join(differing))
    return 1 if differing else 0


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the outputs of each cell with code, run in order in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [
        _outputs("".join(cell["source"]), number, names)
        for number, cell in enumerate(code_cells(notebook), start=1)
    ]


def page(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page of the site."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```py\n{source}\n```")
        shown = "".join(map(_text, cell["outputs"])).rstrip("\n")
        if shown:
            parts.append(f'```text title="output"\n{shown}\n```')
    return "\n\n".join(parts) + "\n"


def _text(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"])


def _outputs(source: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; return what it prints, and the value of an expression at its end."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    place, value = f"cell {number}", None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, place, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = _lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        shown = {"data": _shown(value), "execution_count": number, "metadata": {}}
        outputs.append({**shown, "output_type": "execute_result"})
    return outputs


def _shown(value: object) -> dict[str, list[str]]:
    """Return a value in each form that it has, without the folder it runs in."""
    here = f"{Path.cwd()}/"
    methods = {kind: getattr(value, method, None) for kind, method in _KINDS.items()}
    return {kind: _lines(show().replace(here, "")) for kind, show in methods.items() if show}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    sys.exit(main())
