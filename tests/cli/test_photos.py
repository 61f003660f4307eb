"""The photo tour runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "photos.py"


def test_the_tour_ends_with_a_table_in_order() -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().splitlines()[-1].startswith("no problems found")
