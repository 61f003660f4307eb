"""What is light stays light."""

from __future__ import annotations

import subprocess
import sys


def loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_command_line_does_not_load_spark() -> None:
    assert "pyspark" not in loaded("import lancelake, lancelake.cli.main")


def test_naming_the_package_does_not_load_spark() -> None:
    assert "pyspark" not in loaded("import lancelake.spark")
