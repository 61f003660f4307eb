"""Commands that change rows, and the counts they report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

import lancelake.pylance as lance

Document = Callable[..., Any]
Output = Callable[..., str]
Run = Callable[..., Result]


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    table = pa.table({"id": range(6), "v": [f"v{i}" for i in range(6)]})
    lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=4)
    return tmp_path / "t.lance"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": [4, 9], "v": ["four", "nine"]}), tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def _values(uri: Path) -> dict[int, str]:
    rows = lance.dataset(uri).to_table().to_pylist()
    return {row["id"]: row["v"] for row in rows}


def test_delete_prints_how_many_rows_matched(document: Document, uri: Path) -> None:
    body = document("delete", uri, "--where", "id > 3")
    assert (body["version"], body["deleted"]) == (2, 2)
    assert sorted(_values(uri)) == [0, 1, 2, 3]


def test_delete_of_every_row_must_be_asked_for(run: Run, document: Document, uri: Path) -> None:
    assert run("delete", uri).exit_code == 2
    assert run("delete", uri, "--all", "--where", "true").exit_code == 2
    assert document("delete", uri, "--all")["deleted"] == 6


def test_update_sets_columns_where_rows_match(document: Document, uri: Path) -> None:
    body = document("update", uri, "--set", "v = concat(v, '=')", "--where", "id < 2")
    assert body["updated"] == 2
    assert _values(uri)[1] == "v1="


def test_update_can_rewrite_columns(document: Document, uri: Path) -> None:
    document("update", uri, "--set", "v='x'", "--write-mode", "rewrite_columns")
    assert set(_values(uri).values()) == {"x"}
    assert [len(f.data_files()) for f in lance.dataset(uri).get_fragments()] == [2, 2]


@pytest.mark.parametrize("given", [["v"], ["=1"], ["v="], ["v=1", "v=2"]])
def test_update_refuses_what_sets_nothing(run: Run, uri: Path, given: list[str]) -> None:
    options = [part for value in given for part in ("--set", value)]
    assert run("update", uri, *options).exit_code == 2


def test_merge_updates_and_inserts(document: Document, uri: Path, source: Path) -> None:
    body = document("merge", uri, source, "--on", "id")
    assert (body["inserted"], body["updated"], body["deleted"]) == (1, 1, 0)
    assert _values(uri)[9] == "nine"
    assert _values(uri)[4] == "four"


def test_merge_deletes_what_the_files_lack(document: Document, uri: Path, source: Path) -> None:
    body = document("merge", uri, source, "--on", "id", "--delete-missing", "--no-insert")
    assert (body["inserted"], body["updated"], body["deleted"]) == (0, 1, 5)


@pytest.mark.parametrize(
    ("matched", "expected"),
    [("delete", {0, 1, 2, 3, 5, 9}), ("keep", {0, 1, 2, 3, 4, 5, 9})],
)
def test_merge_can_do_other_things_with_matches(
    document: Document, uri: Path, source: Path, matched: str, expected: set[int]
) -> None:
    document("merge", uri, source, "--on", "id", "--matched", matched)
    assert set(_values(uri)) == expected


def test_merge_looks_at_both_sides(document: Document, uri: Path, source: Path) -> None:
    condition = "source.v = target.v"
    body = document("merge", uri, source, "--on", "id", "--matched-if", condition)
    assert body["updated"] == 0


def test_merge_looks_at_both_sides_of_a_table_with_a_primary_key(
    document: Document, tmp_path: Path
) -> None:
    mark = {"lance-schema:unenforced-primary-key": "true"}
    key = pa.field("key", pa.int64(), nullable=False, metadata=mark)
    schema = pa.schema([key, pa.field("source", pa.int64())])
    lance.write_dataset(pa.table([[1, 2], [10, 20]], schema=schema), tmp_path / "t.lance")
    pq.write_table(pa.table({"key": [1, 2], "source": [15, 15]}), tmp_path / "s.parquet")
    condition = "target.source < source.source"
    body = document(
        "merge", tmp_path / "t.lance", tmp_path / "s.parquet", "--matched-if", condition
    )
    assert (body["updated"], body["inserted"]) == (1, 0)


def test_merge_that_is_refused_names_the_key(run: Run, uri: Path, source: Path) -> None:
    refused = run("merge", uri, source, "--on", "id", "--matched", "fail")
    assert refused.exit_code == 2
    assert "id = 4" in refused.stderr


def test_merge_without_a_key_is_refused(run: Run, uri: Path, source: Path) -> None:
    assert "requires join keys" in run("merge", uri, source).stderr


def test_merge_reads_text_as_the_columns_of_the_table(
    document: Document, uri: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text("id,v\n5,007\n5,008\n")
    body = document("merge", uri, tmp_path / "s.csv", "--on", "id", "--last-wins")
    assert body["updated"] == 1
    assert _values(uri)[5] == "008"


def test_people_read_counts(output: Output, uri: Path, source: Path) -> None:
    assert "1 row inserted, 1 updated, 0 deleted" in output("merge", uri, source, "--on", "id")
    assert "2 rows" in output("delete", uri, "--where", "id < 2")
