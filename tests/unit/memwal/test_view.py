from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError, InvalidRequestError, LanceTableError
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.view import Freshness, open_view, unmerged_generations
from tests.support.memwal_tables import (
    COMPOSITE,
    REGION,
    SIMPLE,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)


def test_each_freshness_adds_rows(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"), (2, "base"))
    mine = writer(base)
    mine.put(rows((1, "flushed"), (3, "flushed")))
    mine.flush()
    mine.put(rows((3, "durable")))
    mine.delete(keys(2))
    assert seen(base, Freshness.BASE) == {1: "base", 2: "base"}
    assert seen(base, Freshness.FLUSHED) == {1: "flushed", 2: "base", 3: "flushed"}
    assert seen(base, Freshness.DURABLE) == {1: "flushed", 3: "durable"}
    assert seen(base, Freshness.DURABLE, {REGION: mine}) == {1: "flushed", 3: "durable"}


def test_a_filter_does_not_bring_replaced_rows_back(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "old"), (2, "old"))
    mine = writer(base)
    mine.put(rows((1, "mid")))
    mine.flush()
    mine.put(rows((1, "new")))
    view = open_view(base, Freshness.DURABLE)
    assert view.to_table(["id"], "name = 'old'").to_pylist() == [{"id": 2}]
    assert view.to_table(["id"], "name = 'mid'").to_pylist() == []
    assert view.to_table(["name"], "id < 2").to_pylist() == [{"name": "new"}]


def test_rows_of_merged_generations_do_not_hide_later_changes(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with writer(base) as mine:
        mine.put(rows((1, "merged")))
    merge_generations(base)
    lance.dataset(tmp_path / "t").update({"name": "'direct'"})
    assert seen(newest(tmp_path / "t")) == {1: "direct"}


def test_rows_written_before_a_schema_change_are_shown_with_the_new_columns(
    tmp_path: Path,
) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    ds = lance.dataset(tmp_path / "t")
    ds.alter_columns({"path": "name", "name": "label"})
    found = open_view(newest(tmp_path / "t"), Freshness.DURABLE).to_table()
    assert {r["id"]: r["label"] for r in found.to_pylist()} == {1: "base", 2: "flushed", 3: "tail"}


def test_official_tables_are_read() -> None:
    assert seen(newest(SIMPLE), Freshness.BASE) == {1: "first", 3: "base", 4: "second", 5: "second"}
    flushed = seen(newest(SIMPLE), Freshness.FLUSHED)
    assert flushed == {1: "first", 3: "base", 4: "second", 5: "second", 6: "third"}
    assert seen(newest(SIMPLE)) == {1: "tail", 3: "base", 4: "second", 5: "second", 7: "tail"}


def test_a_key_of_two_columns_is_compared_as_one() -> None:
    found = open_view(newest(COMPOSITE), Freshness.DURABLE).to_table(["value", "day"])
    assert found.to_pylist() == [{"value": 1.5, "day": 1}, {"value": 2.5, "day": -7}]


def test_unknown_columns_are_refused(tmp_path: Path) -> None:
    view = open_view(new_table(tmp_path / "t", (1, "a")), Freshness.DURABLE)
    with pytest.raises(InvalidRequestError, match="no column x"):
        view.scan(["x"])
    with pytest.raises(LanceTableError, match="x"):
        view.to_table(filter="x = 1")


def test_a_missing_generation_is_reported() -> None:
    manifest = RegionManifest(
        region_id=REGION,
        current_generation=4,
        generations=tuple(Generation(generation=g, path=f"p{g}") for g in (1, 2, 3)),
    )
    assert [g.generation for g in unmerged_generations(manifest, 1)] == [2, 3]
    trimmed = replace(manifest, generations=manifest.generations[2:])
    assert [g.generation for g in unmerged_generations(trimmed, 2)] == [3]
    with pytest.raises(CorruptTableError, match="generations 2 to 3"):
        unmerged_generations(trimmed, 1)


@pytest.mark.parametrize("far", [3, 1 << 40, -(1 << 62)])
def test_keys_near_and_far_apart_are_compared(tmp_path: Path, far: int) -> None:
    base = new_table(tmp_path / "t", (-(1 << 63), "base"), (1, "base"), (2, "base"), (far, "base"))
    writer(base).put(rows((1, "new"), (far, "new")))
    assert seen(base) == {-(1 << 63): "base", 1: "new", 2: "base", far: "new"}
