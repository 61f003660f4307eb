"""The notebook runs in a real kernel, with the outputs that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: make test-libraries")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: make test-libraries")

_TOUR = Path(__file__).parents[2] / "examples" / "tour.ipynb"


def _texts(notebook: dict) -> list[list[str]]:
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def test_kernel_gives_the_stored_outputs(tmp_path: Path):
    stored = nbformat.read(_TOUR, as_version=4)
    nbformat.validate(stored)
    expected = _texts(stored)
    client = nbclient.NotebookClient(
        stored, timeout=None, resources={"metadata": {"path": tmp_path}}
    )
    found = _texts(client.execute())
    # The kernel breaks long values into lines.
    assert [["".join(t.split()) for t in c] for c in found] == [
        ["".join(t.split()) for t in c] for c in expected
    ]
