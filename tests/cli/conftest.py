"""Fixtures that run the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lancelake.cli.group import app
from tests.support.official import Official
from tests.support.sound_tables import build_sound

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def sound(official_14: Official, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table that is in order, and must stay so."""
    return build_sound(official_14, tmp_path_factory.mktemp("cli") / "sound.lance")


@pytest.fixture
def table(sound: Path, tmp_path: Path) -> Path:
    """Return a copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "table.lance"))


@pytest.fixture
def run() -> Run:
    """Return a function that runs a command at a width, without colours."""

    def invoke(*args: str | Path, width: int = 100) -> Result:
        environment = {"COLUMNS": str(width), "NO_COLOR": "1"}
        return CliRunner().invoke(app, [str(a) for a in args], env=environment)

    return invoke


@pytest.fixture
def output(run: Run) -> Callable[..., str]:
    """Return a function that runs a command, which must succeed, and returns what it prints."""

    def invoke(*args: str | Path, width: int = 100) -> str:
        result = run(*args, width=width)
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


@pytest.fixture
def document(output: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that runs a command for programs, and returns the document."""

    def invoke(*args: str | Path) -> Any:
        return json.loads(output(*args, "--output", "json"))

    return invoke
