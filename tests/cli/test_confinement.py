"""`--confine-to` restricts a table to the allowed locations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import Result

import lancelake.pylance as lance

Run = Callable[..., Result]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "source.lance"))
    made.shallow_clone(str(tmp_path / "clone.lance"), 1)
    return tmp_path / "source.lance"


@pytest.fixture
def clone(source: Path) -> Path:
    return source.with_name("clone.lance")


def test_confined_table_reaches_only_the_roots_that_are_given(
    run: Run, clone: Path, source: Path
) -> None:
    for args in (
        ["--confine-to", clone, "head", clone],
        ["head", clone, "--confine-to", clone],
        ["head", f"--confine-to={clone}", clone],
    ):
        result = run(*args)
        assert result.exit_code == 2, result.output
        assert "outside of confine_to" in " ".join(result.stderr.split())
    assert run("head", clone, "--confine-to", clone, "--confine-to", source).exit_code == 0
    assert run("head", clone).exit_code == 0


@pytest.mark.parametrize(
    "command", [["delete", "--where", "a = 1"], ["take", "0"], ["sql", "SELECT a FROM dataset"]]
)
def test_every_command_is_confined(run: Run, clone: Path, command: list[str]) -> None:
    name, *rest = command
    result = run(name, clone, *rest, "--confine-to", clone)
    assert result.exit_code != 0
    assert "confine_to" in result.stderr
