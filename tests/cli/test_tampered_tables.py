"""Tables that no writer leaves are read, or refused in a few lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lancelake import dataset
from tests.cli.conftest import Run
from tests.support.tampered_tables import TAMPERINGS, built

ACTIONS = {"read": ["head"], "delete": ["delete", "--where", "id = 1"]}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("case", TAMPERINGS)
def test_command_succeeds_or_names_the_problem(
    run: Run, tmp_path: Path, case: str, action: str
) -> None:
    root, tampering = built(tmp_path / "t.lance"), TAMPERINGS[case]
    tampering.apply(root)
    name, *rest = ACTIONS[action]
    result = run(name, root, *rest, width=300)
    problem = tampering.read if action == "read" else tampering.delete
    if problem is None:
        assert result.exit_code == 0, result.output
    else:
        assert (result.exit_code in (2, 6), result.stdout) == (True, "")
        assert re.search(problem, result.stderr)


@pytest.mark.parametrize("link", ["tree/x/data/sub", "tree/x"])
def test_files_behind_a_link_outlive_a_branch(run: Run, tmp_path: Path, link: str) -> None:
    root, victim = built(tmp_path / "t.lance"), built(tmp_path / "victim.lance")
    assert run("branch", "create", root, "x").exit_code == 0
    before = {path for path in victim.rglob("*") if path.is_file()}
    place = root / link
    if place.exists():
        place.rename(root / "away")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    assert run("branch", "delete", root, "x").exit_code == 0
    assert "x" not in dataset(root).branches.list()
    assert {path for path in victim.rglob("*") if path.is_file()} == before
