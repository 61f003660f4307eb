"""`lancelake sql`: queries, and refused statements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance
from tests.cli.conftest import Run

Output = Callable[..., str]


def test_answers_are_shown_as_rows(output: Output, sound: Path) -> None:
    lines = output("sql", sound, "SELECT count(*) AS n, max(id) AS m FROM dataset").splitlines()
    assert lines[0].split() == ["n", "m"]
    assert lines[-1] == "1 row"


def test_programs_get_a_document(document: Callable[..., Any], sound: Path) -> None:
    body = document("sql", sound, "SELECT id FROM dataset WHERE id > 5 ORDER BY id", "-n", "2")
    assert body["columns"] == [{"name": "id", "type": "int64"}]
    assert len(body["rows"]) == 2


def test_no_more_rows_than_asked_for_are_shown(output: Output, sound: Path) -> None:
    more = "; more rows available, use --rows\n"
    assert output("sql", sound, "SELECT id FROM dataset", "--rows", "3").endswith(f"3 rows{more}")
    assert more not in output("sql", sound, "SELECT id FROM dataset", "-n", "0")
    assert output("sql", sound, "SELECT 1 AS one", "-n", "1").endswith("1 row\n")


def test_programs_get_all_rows_unless_they_ask_for_fewer(
    document: Callable[..., Any], tmp_path: Path
) -> None:
    uri = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(250)}), uri, max_rows_per_file=60)
    whole = document("sql", uri, "SELECT id FROM dataset")
    assert [row["id"] for row in whole["rows"]] == list(range(250))
    assert whole["truncated"] is False
    some = document("sql", uri, "SELECT id FROM dataset", "-n", "70")
    assert (len(some["rows"]), some["truncated"]) == (70, True)
    none = document("sql", uri, "SELECT id FROM dataset WHERE id < 0")
    assert (none["rows"], none["truncated"]) == ([], False)


def test_a_query_can_be_explained(output: Output, sound: Path) -> None:
    text = output("sql", sound, "SELECT id FROM dataset WHERE id = 1", "--explain")
    assert "LanceRead" in text
    assert "Filter" in text


def test_an_older_version_can_be_asked(output: Output, sound: Path) -> None:
    query = "SELECT count(*) AS n FROM dataset"
    assert output("sql", sound, query, "--at", "1") != ""


def test_what_is_no_query_is_a_mistake_of_the_user(run: Run, sound: Path) -> None:
    for query in ("SELECT nothing FROM dataset", "DROP TABLE dataset", "SELEC 1"):
        result = run("sql", sound, query)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


def test_a_query_that_is_left_early_ends_the_process_in_order(sound: Path) -> None:
    query = "SELECT a.id FROM dataset a, dataset b WHERE a.id < b.id AND b.id > 0"
    command = [sys.executable, "-m", "lancelake", "sql", str(sound), query, "-n", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_other_tables_of_a_query_have_names(output: Output, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1, 2, 3], "v": [0.5, 1.5, 2.5]}), tmp_path / "a.lance")
    lance.write_dataset(pa.table({"id": [2, 3], "name": ["x", "y"]}), tmp_path / "b.lance")
    query = "SELECT b.name, a.v FROM dataset a JOIN b ON a.id = b.id WHERE a.v > 2"
    table = f"b={tmp_path / 'b.lance'}"
    assert output("sql", tmp_path / "a.lance", query, "-t", table, "-o", "csv") == "name,v\ny,2.5\n"


def test_an_unknown_table_is_reported_with_those_that_exist(run: Run, sound: Path) -> None:
    result = run("sql", sound, "SELECT * FROM photos", "-t", f"other={sound}", width=200)
    assert result.exit_code == 2
    assert "there is no table 'photos'; the query can use dataset, other" in result.stderr


def test_a_table_without_a_name_is_refused(run: Run, sound: Path) -> None:
    for text in ("b", "=x", "a b=x", "dataset=x"):
        assert run("sql", sound, "SELECT 1", "-t", text).exit_code == 2


def test_a_query_is_read_from_standard_input(sound: Path) -> None:
    for arguments in ((), ("-",)):
        command = [sys.executable, "-m", "lancelake", "sql", str(sound), *arguments, "-o", "jsonl"]
        done = subprocess.run(
            command, input="SELECT 1 AS one", capture_output=True, text=True, check=True
        )
        assert done.stdout == '{"one": 1}\n'


def test_rows_that_a_format_for_programs_leaves_out_are_reported(run: Run, sound: Path) -> None:
    for output_format in ("csv", "jsonl"):
        result = run("sql", sound, "SELECT id FROM dataset", "-n", "2", "-o", output_format)
        assert "more rows available" in result.stderr
        assert "more rows" not in result.stdout
