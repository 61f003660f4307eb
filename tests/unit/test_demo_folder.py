"""The demo without Spark runs, and does not touch folders that it did not create."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_a_folder_of_someone_else_is_not_removed(tmp_path: Path) -> None:
    kept = tmp_path / "precious.txt"
    kept.write_text("mine")
    command = [sys.executable, str(DEMO), "--uri", str(tmp_path), "--no-spark", "--rows", "100"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "is not of this demo" in run.stderr
    assert kept.read_text() == "mine"


def test_the_demo_without_spark_ends_with_a_table_that_official_lance_validates(
    tmp_path: Path,
) -> None:
    command = [sys.executable, str(DEMO), "--uri", str(tmp_path), "--no-spark", "--rows", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "30 updated, 30 inserted" in done.stdout
    assert "pylance 14" in done.stdout
    assert "lancelake log" in done.stdout
