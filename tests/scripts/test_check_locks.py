"""The lock-file check refuses every line with a location."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_locks

PIN = """\
six==1.17.0 ; python_full_version < '3.12' \\
    --hash=sha256:00ff
    # via python-dateutil
"""


def test_packages_versions_and_hashes_pass(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(PIN)
    assert check_locks.main(tmp_path) == 0


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "--find-links /somewhere/wheels",
        "-e .",
        "six @ file:///somewhere/six.whl",
        "./six.whl",
        "    # via -r /somewhere/a.in",
    ],
)
def test_line_that_names_a_place_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.lock").write_text(f"{PIN}{line}\n")
    assert check_locks.main(tmp_path) == 1
