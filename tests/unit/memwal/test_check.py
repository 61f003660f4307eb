from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal import wal_files
from lancelake.format.operations import CreateIndex
from lancelake.maintenance.check.finding import Severity
from lancelake.memwal.table_check import check_table
from lancelake.storage.location import Location
from lancelake.table.publish import CommitChoices, new_transaction, publish
from tests.support.memwal_tables import (
    CAUGHT_UP,
    COMPOSITE,
    REGION,
    SIMPLE,
    generation_dir,
    new_table,
    newest,
    rows,
    writer,
)


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a generation and a tail."""
    mine = writer(new_table(tmp_path / "t", (1, "base")))
    mine.put(rows((1, "flushed")))
    mine.flush()
    mine.put(rows((2, "tail")))
    mine.put(rows((3, "tail")))
    return tmp_path / "t"


def codes(uri: Path) -> list[str]:
    found = check_table(Location.parse(uri), data=True)
    return sorted({f.code for f in found if f.severity is not Severity.INFO})


@pytest.mark.parametrize("table", [SIMPLE, COMPOSITE, CAUGHT_UP])
def test_tables_of_the_official_release_are_sound(table: Path, tmp_path: Path) -> None:
    assert codes(Path(shutil.copytree(table, tmp_path / "t"))) == []


def test_a_sound_mem_wal(uri: Path) -> None:
    assert codes(uri) == []


def test_a_missing_generation(uri: Path) -> None:
    shutil.rmtree(generation_dir(uri, 1))
    assert codes(uri) == ["mem-wal-generation"]


def test_a_missing_sidecar(uri: Path) -> None:
    (generation_dir(uri, 1) / wal_files.BLOOM_FILE).unlink()
    assert codes(uri) == ["mem-wal-sidecar"]


def test_a_hole_in_the_wal(uri: Path) -> None:
    (uri / wal_files.wal_entry(REGION, 2)).unlink()
    assert codes(uri) == ["mem-wal-hole"]


def test_a_damaged_entry(uri: Path) -> None:
    (uri / wal_files.wal_entry(REGION, 3)).write_bytes(b"damaged")
    assert codes(uri) == ["mem-wal-region"]


def test_a_damaged_manifest(uri: Path) -> None:
    (uri / wal_files.manifest(REGION, 2)).write_bytes(b"\xff")
    assert codes(uri) == ["mem-wal-region"]


def test_rows_without_a_mem_wal(uri: Path) -> None:
    base = newest(uri)
    choices = CommitChoices(after=())
    gone = tuple(index for index in base.indices if index.name == MEM_WAL)
    removal = CreateIndex(new_indices=(), removed_indices=gone)
    publish(base, new_transaction(removal, base.version, choices), choices)
    assert codes(uri) == ["mem-wal-left"]


def test_regions_of_a_branch_are_checked(uri: Path) -> None:
    lance.dataset(uri).create_branch("b")
    folder = uri / "tree" / "b" / "_mem_wal" / str(REGION) / "wal"
    folder.mkdir(parents=True)
    (folder / "x.arrow").write_bytes(b"")
    found = [f for f in check_table(Location.parse(uri)) if f.code == "mem-wal-region"]
    assert [f.branch for f in found] == ["b"]
