"""`lancelake config`: show and change settings of each map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Document = Callable[..., Any]
Run = Callable[..., Result]

MAPS = [
    pytest.param([], id="config"),
    pytest.param(["--metadata"], id="table metadata"),
    pytest.param(["--schema-metadata"], id="schema metadata"),
    pytest.param(["--field", "meta.a"], id="field metadata"),
]


@pytest.mark.parametrize("which", MAPS)
def test_what_is_set_is_listed(which: list[str], document: Document, table: Path) -> None:
    document("config", "set", table, "one=1", "two=a=b", *which)
    values = document("config", "list", table, *which)["values"]
    assert (values["one"], values["two"]) == ("1", "a=b")


@pytest.mark.parametrize("which", MAPS)
def test_what_is_unset_is_gone(which: list[str], document: Document, table: Path) -> None:
    document("config", "set", table, "one=1", "two=2", *which)
    values = document("config", "unset", table, "one", *which)["values"]
    assert ("one" in values, values["two"]) == (False, "2")


def test_the_maps_are_kept_apart(document: Document, table: Path) -> None:
    document("config", "set", table, "one=1", "--metadata")
    assert "one" not in document("config", "list", table)["values"]


def test_several_settings_are_one_version(document: Document, table: Path) -> None:
    assert document("config", "set", table, "one=1", "two=2")["version"] == 6


def test_get_prints_the_value_alone(output: Callable[..., str], sound: Path) -> None:
    assert output("config", "get", sound, "key") == "value\n"


def test_get_at_a_version(run: Run, document: Document, table: Path) -> None:
    document("config", "set", table, "key=other")
    assert document("config", "get", table, "key", "--at", "5")["value"] == "value"


def test_a_branch_has_settings_of_its_own(document: Document, table: Path) -> None:
    assert document("config", "set", table, "one=1", "--branch", "side")["branch"] == "side"
    assert "one" not in document("config", "list", table)["values"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["get", "{table}", "nothing"], 3),
        (["unset", "{table}", "nothing"], 3),
        (["get", "{table}", "x", "--field", "nothing"], 2),
        (["set", "{table}", "nonsense"], 2),
        (["set", "{table}", "=1"], 2),
        (["list", "{table}", "--metadata", "--schema-metadata"], 2),
        (["set", "{table}", "a=1", "--branch", "nowhere"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_code_of(args: list[str], code: int, run: Run, sound: Path) -> None:
    result = run("config", *(a.format(table=sound) for a in args))
    assert (result.exit_code, result.stdout) == (code, "")
    assert "Traceback" not in result.stderr
