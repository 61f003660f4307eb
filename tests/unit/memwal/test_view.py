from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError, InvalidRequestError, LanceTableError
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import RegionFiles
from lancelake.memwal.view import Freshness, ViewRequest, open_view, unmerged_generations
from tests.support.manual_clock import age_files
from tests.support.memwal_tables import (
    COMPOSITE,
    NEW_REGION,
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
        view.scan(ViewRequest(columns=("x",)))
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


def test_rows_are_returned_with_their_generation_and_address(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"), (2, "base"))
    mine = writer(base)
    mine.put(rows((2, "flushed"), (3, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    request = ViewRequest(columns=("id",), with_generation=True, with_row_address=True)
    found = open_view(base, Freshness.DURABLE).scan(request).read_all()
    assert found.schema.names == ["id", "_rowaddr", "_memtable_gen"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (3, None, 2),
        (2, 0, 1),
        (1, 0, 0),
    ]


def test_a_limit_and_an_offset_count_the_newest_rows(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"), (2, "base"))
    writer(base).put(rows((2, "tail"), (3, "tail")))
    view = open_view(base, Freshness.DURABLE)
    every = view.to_table(["id"]).column("id").to_pylist()
    for offset, limit in ((0, 0), (0, 2), (1, 1), (2, 5), (3, 1)):
        request = ViewRequest(columns=("id",), limit=limit, offset=offset)
        found = view.scan(request).read_all().column("id").to_pylist()
        assert found == every[offset : offset + limit]


def test_rows_are_counted_after_the_filter(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"), (2, "base"))
    assert open_view(base, Freshness.DURABLE).count_rows() == 2
    writer(base).put(rows((2, "tail"), (3, "tail")))
    view = open_view(base, Freshness.DURABLE)
    assert (view.count_rows(), view.count_rows("name = 'base'")) == (3, 1)


def test_an_unknown_freshness_is_refused() -> None:
    assert Freshness.named("flushed") is Freshness.FLUSHED
    with pytest.raises(InvalidRequestError, match="valid values: base, flushed, durable"):
        Freshness.named("fresh")


def test_negative_limits_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="negative"):
        ViewRequest(limit=-1)


def test_a_flush_that_is_merged_before_its_writer_knows(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((2, "new")))
    before = mine.unflushed()
    mine.flush()
    merge_generations(newest(tmp_path / "t"))
    lance.dataset(tmp_path / "t").update({"name": "'direct'"}, where="id = 2")
    mine.unflushed = lambda: before  # type: ignore[method-assign]
    found = seen(newest(tmp_path / "t"), Freshness.DURABLE, {REGION: mine})
    assert found == {1: "base", 2: "direct"}


def test_entries_that_are_collected_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    for key in (2, 3):
        mine.put(rows((key, "new")))
    listed = RegionFiles.last_position
    turns = iter([None])

    def positions(files: RegionFiles) -> int:
        found = listed(files)
        for _ in turns:
            mine.flush()
            age_files(tmp_path / "t", 60.0)
            collect_garbage(base, older_than=timedelta(0))
        return found

    monkeypatch.setattr(RegionFiles, "last_position", positions)
    assert seen(base) == {1: "base", 2: "new", 3: "new"}


def test_progress_beyond_a_region_is_reported(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with writer(base) as mine:
        mine.put(rows((2, "new")))
    merge_generations(newest(tmp_path / "t"))
    # As a writer of an official release leaves a clone: it begins with the first generation.
    shutil.rmtree(tmp_path / "t" / "_mem_wal")
    files = RegionFiles.at(base.location, REGION)
    files.create_manifest(NEW_REGION.claimed())
    with pytest.raises(CorruptTableError, match="counts as merged"):
        seen(newest(tmp_path / "t"))


def test_a_generation_number_beyond_reason_is_refused() -> None:
    manifest = RegionManifest(region_id=REGION, current_generation=(1 << 63) - 1)
    with pytest.raises(CorruptTableError, match="some have been removed"):
        unmerged_generations(manifest, 0)


@pytest.mark.parametrize(
    ("replaced", "others"),
    [
        ((-5, 7), (-6, 0, 8, -(1 << 63), (1 << 63) - 1)),
        ((-(1 << 63), 3 - (1 << 63)), (1 - (1 << 63), -1, 0, (1 << 63) - 1)),
        (((1 << 63) - 3, (1 << 63) - 1), ((1 << 63) - 2, -(1 << 63), 0)),
    ],
    ids=["around zero", "least", "greatest"],
)
def test_only_rows_of_replaced_keys_are_hidden(
    tmp_path: Path, replaced: tuple[int, ...], others: tuple[int, ...]
) -> None:
    base = new_table(tmp_path / "t", *((key, "base") for key in (*replaced, *others)))
    mine = writer(base)
    mine.put(rows(*((key, "new") for key in replaced)))
    mine.flush()
    assert seen(base, Freshness.FLUSHED) == dict.fromkeys(replaced, "new") | dict.fromkeys(
        others, "base"
    )


def test_rows_of_the_table_come_in_large_batches(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", *((key, "base") for key in range(20_000)))
    mine = writer(base)
    mine.put(rows((7, "new")))
    mine.flush()
    view = open_view(base, Freshness.FLUSHED)
    found = view.scan(ViewRequest(columns=("name",)))
    assert [batch.num_rows for batch in found] == [1, 19_999]
