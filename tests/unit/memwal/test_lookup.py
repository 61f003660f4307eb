from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_files
from lancelake.index.scalar.btree.build import PAGE_FILE
from lancelake.memwal.search import find_rows
from lancelake.memwal.view import Freshness, open_view
from tests.hostile.document_cases import rewritten
from tests.support.memwal_tables import COMPOSITE, SIMPLE, keys, new_table, newest, rows, writer


@pytest.fixture
def table(tmp_path: Path) -> Path:
    base = new_table(tmp_path / "t", *((k, "base") for k in range(1, 6)))
    mine = writer(base)
    mine.put(rows((1, "first"), (6, "first"), (7, "first")))
    mine.flush()
    mine.put(rows((6, "second")))
    mine.delete(keys(2))
    mine.flush()
    mine.put(rows((3, "tail"), (8, "tail")))
    mine.delete(keys(7))
    return tmp_path / "t"


def _found(table: Path, *wanted: int, freshness: Freshness = Freshness.DURABLE) -> dict[int, str]:
    found = find_rows(open_view(newest(table), freshness), keys(*wanted)).to_pylist()
    by_key = {row["id"]: row["name"] for row in found}
    assert len(by_key) == len(found)
    return by_key


def test_the_newest_row_of_each_key_is_found(table: Path) -> None:
    expected = {1: "first", 3: "tail", 4: "base", 6: "second", 8: "tail"}
    assert _found(table, 1, 2, 3, 4, 6, 7, 8, 99, 1) == expected


def test_rows_that_are_not_fresh_enough_are_not_found(table: Path) -> None:
    wanted = (1, 2, 3, 6, 8)
    assert _found(table, *wanted, freshness=Freshness.BASE) == {1: "base", 2: "base", 3: "base"}
    flushed = _found(table, *wanted, freshness=Freshness.FLUSHED)
    assert flushed == {1: "first", 3: "base", 6: "second"}


def test_a_lookup_finds_what_a_scan_finds(table: Path) -> None:
    lance.dataset(table).create_scalar_index("id", "BTREE")
    view = open_view(newest(table), Freshness.DURABLE)
    expected = {row["id"]: row["name"] for row in view.to_table().to_pylist()}
    assert _found(table, *range(12)) == expected


@pytest.mark.parametrize("row", [3, 1 << 40])
def test_rows_that_a_generation_lacks_are_reported(table: Path, row: int) -> None:
    for pages in table.glob(f"_mem_wal/*/*/{wal_files.KEY_INDEX}/{PAGE_FILE}"):
        place = str(pages.relative_to(table))
        rewritten(place, values={"ids": row})(table)
    with pytest.raises(CorruptTableError, match="has rows that its generation lacks"):
        _found(table, 1, 6)


def test_no_keys_find_no_rows(table: Path) -> None:
    assert _found(table) == {}


@pytest.mark.parametrize("missing", [wal_files.BLOOM_FILE, wal_files.KEY_INDEX])
def test_generations_without_sidecars_are_read(table: Path, missing: str) -> None:
    for path in table.glob(f"_mem_wal/*/*/{missing}"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert _found(table, 1, 6, 7) == {1: "first", 6: "second"}


def test_rows_of_the_official_release_are_found() -> None:
    assert _found(SIMPLE, *range(9)) == {1: "tail", 3: "base", 4: "second", 5: "second", 7: "tail"}


def test_keys_of_two_columns_are_found() -> None:
    base = newest(COMPOSITE)
    schema = pa.schema(_key_fields(COMPOSITE))
    wanted = pa.table([["Bern", "Rome", "Rome"], [1, 1, -7]], schema=schema)
    found = find_rows(open_view(base, Freshness.DURABLE), wanted)
    assert sorted(found.column("value").to_pylist()) == [1.5, 2.5]


def _key_fields(table: Path) -> list[pa.Field]:
    return [lance.dataset(table).schema.field(name) for name in ("city", "day")]
