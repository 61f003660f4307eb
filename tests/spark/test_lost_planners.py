"""Planners that are killed: nothing is lost, and the next statement works."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import lancelake
from tests.support.doomed_planner import LAST_WORDS, launcher
from tests.support.front_doors import connect_server, run_module

CLIENT = "tests.support.lost_planner_client"
LOSS = "The Python process that plans Lance tables ended during this query."


@dataclass(frozen=True)
class Seen:
    """What the client saw, the log of the server, and the table afterwards."""

    cases: dict[str, Any]
    log: str
    table: Path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    root = tmp_path_factory.mktemp("lost")
    conf = {"spark.lancelake.python": str(launcher(root))}
    with connect_server(root, **conf) as server:
        done = run_module(root, CLIENT, str(server.port), str(root))
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout.splitlines()[-1])
    return Seen(cases, (root / "server.log").read_text(), root / "tables" / "db" / "t.lance")


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("same_session", 100),
        ("other_session", 100),
        ("statement_of_ours", 1),
        ("row_command", 99),
        ("session_catalog", 7),
        ("kept_view", 99),
    ],
)
def test_the_next_statement_has_a_new_planner(seen: Seen, case: str, result: object) -> None:
    assert seen.cases[case] == result


def test_the_gateway_of_a_lost_planner_is_closed(seen: Seen) -> None:
    assert seen.cases["closed_gateway"] is True


@pytest.mark.parametrize(
    ("case", "rows"),
    [
        ("while_planning", 99),
        ("in_a_job", 99),
        ("in_the_job_of_a_merge", 99),
        ("before_an_insert_is_published", 99),
        ("after_an_insert_is_published", 100),
        ("before_a_delete_is_published", 99),
    ],
)
def test_a_statement_that_loses_its_planner_fails_and_the_next_one_works(
    seen: Seen, case: str, rows: int
) -> None:
    error, count = seen.cases[case]
    assert LOSS in error.splitlines()[0]
    assert "history" in error.splitlines()[0]
    assert count == rows


@pytest.mark.parametrize("case", ["while_planning", "after_an_insert_is_published"])
def test_the_error_has_the_last_lines_of_the_planner(seen: Seen, case: str) -> None:
    assert LAST_WORDS in seen.cases[case][0]


def test_lines_of_the_planner_are_in_the_log_of_the_driver(seen: Seen) -> None:
    assert f" WARN LancePlanner: {LAST_WORDS}" in seen.log


def test_a_wrong_secret_gets_nothing_and_disturbs_nobody(seen: Seen) -> None:
    accepted, is_undisturbed = seen.cases["wrong_secret"]
    assert accepted == {"right": True, "wrong": False, "none": False, "no login": False}
    assert is_undisturbed


def test_the_table_is_sound(seen: Seen) -> None:
    assert lancelake.dataset(seen.table).count_rows() == 99
