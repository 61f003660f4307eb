"""`lancelake changes`: text and JSON output."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.support.official import Official
from tests.support.table_surgery import set_commit_time

Document = Callable[..., Any]
Output = Callable[..., str]


def kinds(body: Any) -> list[tuple[int, str]]:
    return [(row["_commit_version"], row["_change_type"]) for row in body["rows"]]


def test_people_see_what_happened_first(output: Output, sound: Path) -> None:
    lines = output("changes", sound, "--from", "2", "--to", "3", "-c", "id,text").splitlines()
    assert lines[0].split() == ["version", "change", "row", "id", "id", "text"]
    assert lines[1].split() == ["3", "delete", "1", "1", "row", "1"]
    assert lines[-1] == "3 rows"


def test_programs_get_every_column(document: Document, sound: Path) -> None:
    body = document("changes", sound, "--from", "2", "--to", "3")
    assert [column["name"] for column in body["columns"]] == [
        "id", "text", "meta", "_rowid", "_change_type", "_commit_version", "_commit_timestamp",
    ]  # fmt: skip
    assert [row["id"] for row in body["rows"]] == [1, 2, 25]


def test_without_from_the_last_version_alone(document: Document, sound: Path) -> None:
    assert kinds(document("changes", sound, "--to", "3")) == [(3, "delete")] * 3
    assert kinds(document("changes", sound)) == []


def test_rows_are_limited(document: Document, sound: Path) -> None:
    few = document("changes", sound, "--from", "0", "-n", "3")
    assert (len(few["rows"]), few["truncated"]) == (3, True)
    assert len(document("changes", sound, "--from", "0", "-n", "0")["rows"]) == 33


def test_programs_get_all_rows(document: Document, sound: Path) -> None:
    whole = document("changes", sound, "--from", "0")
    assert (len(whole["rows"]), whole["truncated"]) == (33, False)


def test_output_says_that_there_are_more_rows(output: Output, sound: Path) -> None:
    shown = output("changes", sound, "--from", "0", "-n", "20").splitlines()[-1]
    assert shown == "20 rows; more rows available, use --rows"


def test_kinds_and_filters(document: Document, sound: Path) -> None:
    body = document("changes", sound, "--from", "0", "-k", "delete, update", "-f", "id > 1")
    assert kinds(body) == [(3, "delete")] * 2


def test_net_changes(document: Document, sound: Path) -> None:
    body = document("changes", sound, "--from", "0", "--net", "-n", "0")
    assert kinds(body) == [(5, "insert")] * 27


def test_a_commit_with_an_earlier_time_than_the_one_before_it_is_shown(
    document: Document, sound: Path, tmp_path: Path
) -> None:
    skewed = shutil.copytree(sound, tmp_path / "skewed.lance")
    for version, second in {1: 50, 2: 100, 3: 90}.items():
        set_commit_time(skewed, version, second * 1_000_000_000)
    by_time = document("changes", skewed, "--from", "1970-01-01T00:01:40+00:00", "-n", "0")
    assert by_time["rows"] == document("changes", skewed, "--from", "2", "-n", "0")["rows"]


def test_a_tag_a_branch_and_a_time(document: Document, sound: Path) -> None:
    by_tag = document("changes", sound, "--from", "first", "--to", "2")
    assert by_tag == document("changes", sound, "--from", "1", "--to", "2")
    assert kinds(document("changes", sound, "--from", "5", "--to", "side:")) == [(6, "insert")] * 5
    assert document("changes", sound, "--from", "2000-01-01", "-n", "0")["rows"][0]["id"] == 0


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--from", "9"], 3),
        (["--from", "4", "--to", "2"], 2),
        (["--from", "no-such-tag"], 3),
        (["-k", "upsert"], 2),
    ],
)
def test_wrong_options_are_refused(
    run: Callable[..., Result], sound: Path, args: list[str], code: int
) -> None:
    assert run("changes", sound, *args).exit_code == code


def test_a_table_without_stable_row_ids_gets_advice(
    run: Callable[..., Result], official_14: Official, tmp_path: Path
) -> None:
    official_14.run(tmp_path / "t.lance", 'lance.write_dataset(pa.table({"x": [1]}), uri)')
    result = run("changes", tmp_path / "t.lance")
    assert result.exit_code == 5
    assert "enable_stable_row_ids=True" in result.output
