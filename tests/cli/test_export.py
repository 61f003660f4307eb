"""`lancelake export`: files with the rows of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import lancelake.pylance as lance
from tests.cli.conftest import Run

ROWS = pa.table(
    {
        "id": range(5),
        "s": ["a,b", "", None, 'q"x', "é"],
        "l": [[1, 2], None, [], [3], [4]],
        "b": [b"\x00", b"", None, b"x", b"yz"],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=2)
    return tmp_path / "t.lance"


def test_parquet_and_arrow_keep_the_rows(table: Path, run: Run, tmp_path: Path) -> None:
    assert run("export", table, tmp_path / "t.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "t.parquet").equals(ROWS)
    assert run("export", table, tmp_path / "t.arrow").exit_code == 0
    assert pa.ipc.open_file(tmp_path / "t.arrow").read_all().equals(ROWS)


def test_csv_distinguishes_null_from_an_empty_string(table: Path, run: Run, tmp_path: Path) -> None:
    assert run("export", table, tmp_path / "t.csv", "-c", "id,s,l").exit_code == 0
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "id,s,l",
        '0,"a,b","[1, 2]"',
        '1,"",',
        "2,,[]",
        '3,"q""x",[3]',
        "4,é,[4]",
    ]


def test_json_lines_of_a_filter(table: Path, run: Run, tmp_path: Path) -> None:
    result = run("export", table, tmp_path / "t.jsonl", "-f", "id > 3")
    assert result.stderr == f"1 row written to {tmp_path / 't.jsonl'}\n"
    row = json.loads((tmp_path / "t.jsonl").read_text(encoding="utf-8"))
    assert row == {"id": 4, "s": "é", "l": [4], "b": "eXo="}


def test_standard_output(table: Path, run: Run) -> None:
    result = run("export", table, "-", "--format", "csv", "-c", "id", "-f", "id < 1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "id\n0\n", "")


def test_a_file_is_replaced_only_on_request(table: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mine")
    assert run("export", table, tmp_path / "x.csv").exit_code == 4
    assert (tmp_path / "x.csv").read_text() == "mine"
    assert run("export", table, tmp_path / "x.csv", "--overwrite").exit_code == 0


def test_a_failed_export_leaves_no_file(table: Path, run: Run, tmp_path: Path) -> None:
    data = next((table / "data").iterdir())
    data.write_bytes(data.read_bytes()[:-100])
    assert run("export", table, tmp_path / "x.csv").exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["t.lance"]


def test_an_unknown_name_is_refused(table: Path, run: Run, tmp_path: Path) -> None:
    assert run("export", table, tmp_path / "x.xls").exit_code == 2
    assert run("export", table, "-", "--format", "parquet").exit_code == 2


@pytest.mark.parametrize("target", ["s3://bucket/rows.parquet", "dbfs:/rows.csv"])
def test_a_uri_is_no_local_file(target: str, sound: Path, run: Run) -> None:
    result = run("export", sound, target)
    assert (result.exit_code, "is a URI" in result.stderr) == (2, True)
