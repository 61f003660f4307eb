"""`lancelake restore`: an old version becomes the newest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

Document = Callable[..., Any]


def test_restores_a_tag(document: Document, table: Path) -> None:
    body = document("restore", table, "--at", "first")
    assert (body["version"], body["branch"], body["restored_version"]) == (6, None, 1)
    assert document("count", table)["rows"] == 20


def test_restores_on_the_branch_of_the_version(document: Document, table: Path) -> None:
    body = document("restore", table, "--at", "side:5")
    assert (body["branch"], body["version"]) == ("side", 7)
    assert document("info", table)["version"] == 5


def test_the_message_is_in_the_log(document: Document, table: Path) -> None:
    document("restore", table, "--at", "1", "--message", "back to the start")
    assert document("log", table)["versions"][0]["message"] == "back to the start"


def test_the_version_has_to_be_named(run: Callable[..., Result], sound: Path) -> None:
    result = run("restore", sound)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_missing_version_exits_with_3(run: Callable[..., Result], sound: Path) -> None:
    assert run("restore", sound, "--at", "99").exit_code == 3
