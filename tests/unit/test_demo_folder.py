"""The demo does not touch folders that it did not create."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_a_folder_of_someone_else_is_not_removed(tmp_path: Path) -> None:
    kept = tmp_path / "precious.txt"
    kept.write_text("mine")
    command = [sys.executable, str(DEMO), "--uri", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "is not of this demo" in run.stderr
    assert kept.read_text() == "mine"
