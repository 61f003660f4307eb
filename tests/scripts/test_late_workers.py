"""Tests of Spark run again only when Spark gave up waiting for a worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.late_workers import CAME_LATE, GAVE_UP

REPO = Path(__file__).parents[2]
CONFTEST = """
from tests.support.late_workers import run_until_workers_connect
def pytest_runtest_protocol(item, nextitem):
    return run_until_workers_connect(item, nextitem)
"""
TEST = """
import sys
from pathlib import Path
def test_it(tmp_path):
    tries = Path(__file__).with_name("tries")
    count = len(tries.read_text()) if tries.exists() else 0
    tries.write_text("x" * (count + 1))
    assert not list(tmp_path.iterdir())
    (tmp_path / "left").touch()
    print({said!r}, file=sys.stderr)
    assert count >= {wanted}, {text!r}
"""


@pytest.mark.parametrize(
    ("wanted", "said", "text", "tries", "code"),
    [
        (2, "", GAVE_UP, 3, 0),
        (2, CAME_LATE, "another failure", 3, 0),
        (9, "", GAVE_UP, 8, 1),
        (2, "", "another failure", 1, 1),
    ],
    ids=["connects later", "comes late", "never connects", "fails otherwise"],
)
def test_attempts(wanted: int, said: str, text: str, tries: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST.format(wanted=wanted, said=said, text=text))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-o", f"pythonpath={REPO}"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert len((tmp_path / "tries").read_text()) == tries
