"""`lancelake branch`: create, list and delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

Document = Callable[..., Any]
Run = Callable[..., Result]


def test_list_shows_where_branches_began(output: Callable[..., str], sound: Path) -> None:
    assert output("branch", "list", sound).splitlines() == [
        "branch  from    latest",
        "side    main:5       6",
        "1 branch",
    ]


def test_list_for_programs_has_the_latest_version(document: Document, sound: Path) -> None:
    (branch,) = document("branch", "list", sound)["branches"]
    assert (branch["name"], branch["parent_version"], branch["latest_version"]) == ("side", 5, 6)


def test_create_starts_at_a_version(document: Document, table: Path) -> None:
    body = document("branch", "create", table, "new", "--at", "first")
    assert (body["branch"], body["version"], body["parent_version"]) == ("new", 1, 1)
    assert document("count", table, "--at", "new:")["rows"] == 20


def test_create_on_a_branch_remembers_its_parent(document: Document, table: Path) -> None:
    assert document("branch", "create", table, "new", "--at", "side:")["parent_branch"] == "side"


def test_a_new_branch_is_in_order(output: Callable[..., str], table: Path) -> None:
    output("branch", "create", table, "new")
    assert output("check", table).startswith("no problems found")


def test_create_of_a_taken_name_exits_with_4(run: Run, table: Path) -> None:
    assert run("branch", "create", table, "side").exit_code == 4


def test_delete_removes_the_branch(document: Document, table: Path) -> None:
    assert document("branch", "delete", table, "side")["deleted"]["name"] == "side"
    assert document("branch", "list", table)["branches"] == []
    assert not list((table / "tree").rglob("*.manifest"))


def test_delete_of_a_branch_with_children_exits_with_2(output: Any, run: Run, table: Path) -> None:
    output("branch", "create", table, "child", "--at", "side:")
    assert run("branch", "delete", table, "side").exit_code == 2


def test_delete_of_a_missing_branch_exits_with_3(run: Run, sound: Path) -> None:
    assert run("branch", "delete", sound, "nothing").exit_code == 3
