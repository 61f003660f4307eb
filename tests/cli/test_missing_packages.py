"""The command without the packages of its extra."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_TYPER = """
import sys
sys.modules["typer"] = None
from lancelake.__main__ import main
main()
"""


def test_the_extra_is_named() -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_TYPER], check=False, capture_output=True, text=True
    )
    assert result.returncode == 5
    assert result.stderr == (
        "Error: The command line requires the package typer, which is not installed\n"
        '  Install it with `pip install "lancelake[cli]"`.\n'
    )
