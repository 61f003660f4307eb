"""`lancelake wal`: set-up, state, merges, garbage collection and entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import lancelake.pylance as lance
from tests.support.memwal_tables import rows

Document = Callable[..., Any]
Run = Callable[..., Result]


@pytest.fixture
def wal_table(tmp_path: Path) -> Path:
    """Return a table with a row in a generation, one in the log, and a tombstone."""
    path = tmp_path / "t.lance"
    ds = lance.write_dataset(rows((1, "base"), (2, "base")), path)
    ds.wal.initialize(buckets=1)
    w = ds.wal.writer()
    w.put(rows((2, "flushed"), (3, "flushed")))
    w.flush()
    w.put(rows((3, "log")))
    w.delete([1])
    w.close(flush=False)
    return path


def test_init_adds_a_mem_wal(document: Document, tmp_path: Path) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    body = document("wal", "init", tmp_path / "t", "--buckets", "3")
    assert body["version"] == 2
    assert document("wal", "status", tmp_path / "t")["num_regions"] == 3


def test_init_twice_exits_with_4(run: Run, wal_table: Path) -> None:
    assert run("wal", "init", wal_table).exit_code == 4


def test_status_shows_what_is_not_merged(document: Document, wal_table: Path) -> None:
    (region,) = document("wal", "status", wal_table)["regions"]
    assert (region["merged_generation"], region["unmerged_generations"]) == (0, [1])
    assert (region["flushed_rows"], region["tail_entries"], region["tail_rows"]) == (2, 2, 2)


def test_status_is_a_table_for_people(output: Callable[..., str], wal_table: Path) -> None:
    lines = output("wal", "status", wal_table).splitlines()
    assert lines[0].split()[:2] == ["region", "epoch"]
    assert lines[1].split()[1:] == ["1", "0", "1", "2", "2", "active"]
    assert lines[-1] == "1 region"


def test_merge_takes_flushed_rows(document: Document, wal_table: Path) -> None:
    body = document("wal", "merge", wal_table)
    assert (body["rows_inserted"], body["rows_updated"], body["rows_deleted"]) == (1, 1, 0)
    assert list(body["merged"].values()) == [1]


def test_merge_with_flush_takes_all_rows(document: Document, wal_table: Path) -> None:
    body = document("wal", "merge", wal_table, "--flush")
    assert (body["rows_inserted"], body["rows_updated"], body["rows_deleted"]) == (1, 1, 1)
    found = lance.dataset(wal_table).to_table().to_pylist()
    assert {r["id"]: r["name"] for r in found} == {2: "flushed", 3: "log"}


def test_merge_without_work_says_so(output: Callable[..., str], wal_table: Path) -> None:
    output("wal", "merge", wal_table)
    assert "nothing to merge" in output("wal", "merge", wal_table)


def test_gc_removes_what_was_merged(document: Document, wal_table: Path) -> None:
    document("wal", "merge", wal_table, "--flush")
    seen = document("wal", "gc", wal_table, "--older-than", "0s", "--dry-run")
    assert (seen["dry_run"], seen["regions"][0]["generations"]) == (True, [1, 2])
    assert len(list(wal_table.glob("_mem_wal/*/*_gen_*"))) == 2
    done = document("wal", "gc", wal_table, "--older-than", "0s")
    assert done["bytes"] > 0
    assert not list(wal_table.glob("_mem_wal/*/*_gen_*/data/*"))


def test_gc_refuses_a_bad_age(run: Run, wal_table: Path) -> None:
    assert run("wal", "gc", wal_table, "--older-than", "soon").exit_code == 2


def test_tail_shows_the_changes_of_the_log(document: Document, wal_table: Path) -> None:
    found = document("wal", "tail", wal_table)["rows"]
    assert [(r["change"], r["id"], r["name"]) for r in found] == [
        ("upsert", 3, "log"),
        ("delete", 1, None),
    ]
    every = document("wal", "tail", wal_table, "--after", "0")["rows"]
    assert [r["position"] for r in every] == [1, 1, 2, 3]


def test_tail_is_a_table_for_people(output: Callable[..., str], wal_table: Path) -> None:
    lines = output("wal", "tail", wal_table).splitlines()
    assert [line.split()[2:4] for line in lines[:3]] == [
        ["change", "id"],
        ["upsert", "3"],
        ["delete", "1"],
    ]


def test_tail_of_an_unknown_region_exits_with_2(run: Run, wal_table: Path) -> None:
    region = "00000000-0000-0000-0000-000000000000"
    assert run("wal", "tail", wal_table, "--region", region).exit_code == 2


def test_a_table_without_a_mem_wal_exits_with_2(run: Run, sound: Path) -> None:
    for command in ("status", "merge", "tail", "gc"):
        assert run("wal", command, sound).exit_code == 2
