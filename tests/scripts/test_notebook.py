"""The notebook and its page show what its code gives."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import notebook

_ROOT = Path(__file__).parents[2]
_SCRIPT = _ROOT / "scripts" / "notebook.py"
_TOUR = _ROOT / "examples" / "tour.ipynb"


def _notebook(*cells: str) -> dict[str, object]:
    return {"cells": [{"cell_type": "code", "source": [cell], "outputs": []} for cell in cells]}


def test_tour_gives_its_outputs():
    command = [sys.executable, _SCRIPT, _TOUR, _ROOT / "docs" / "tour.md"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_output_that_differs_is_refused(tmp_path: Path):
    path, page = tmp_path / "n.ipynb", tmp_path / "n.md"
    stored = _notebook("1 + 1")
    path.write_text(json.dumps(stored))
    page.write_text(notebook.page(stored))
    command = [sys.executable, _SCRIPT, path, page]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, "1 + 1" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1 + 1", "2"),
        ("print('a')\n'b'", "a\n'b'"),
        ("a = 1", ""),
        ("None", ""),
    ],
)
def test_output_of_a_cell(source: str, shown: str):
    stored = _notebook(source)
    stored["cells"][0]["outputs"] = notebook.run(stored)[0]
    assert notebook.page(stored).count("```text") == bool(shown)
    assert shown in notebook.page(stored)


def test_cells_share_their_names():
    assert notebook.run(_notebook("a = 2", "a + 1"))[1][0]["data"]["text/plain"] == ["3"]
