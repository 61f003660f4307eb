"""The demo runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_ends_with_a_table_that_official_lance_validates(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(DEMO),
            "--rows",
            "2000",
            "--uri",
            str(tmp_path),
            "--master",
            "local[2]",
        ],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "pylance 14" in done.stdout
    assert "20 updated, 20 inserted" in done.stdout
