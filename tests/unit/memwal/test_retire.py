from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import OnBranch, open_snapshot
from lancelake.errors import AlreadyExistsError, InvalidRequestError, WriterFencedError
from lancelake.maintenance.repair.plan import repair
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import RegionFiles, details_of, list_regions
from lancelake.memwal.setup import bucketed, initialize, retire_regions
from lancelake.memwal.table_check import check_table
from lancelake.memwal.view import Freshness
from lancelake.storage.location import Location
from tests.support.memwal_tables import (
    REGION,
    end_without_retirement,
    new_table,
    newest,
    rows,
    seen,
    writer,
)


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a merged generation, another one, and a tail."""
    new_table(tmp_path / "t", (1, "base"), (2, "base"))
    mine = writer(newest(tmp_path / "t"))
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(tmp_path / "t"))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    return tmp_path / "t"


def again(uri: Path) -> None:
    base = newest(uri)
    initialize(base, bucketed(base, "id", 1))


def everywhere(uri: Path) -> list[dict[int, str | None]]:
    return [seen(newest(uri), freshness) for freshness in Freshness]


def test_nothing_comes_back_after_an_overwrite(uri: Path) -> None:
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    again(uri)
    assert everywhere(uri) == [{9: "new"}] * 3
    merge_generations(newest(uri))
    assert everywhere(uri) == [{9: "new"}] * 3


def test_a_new_mem_wal_continues_the_regions(uri: Path) -> None:
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    again(uri)
    with writer(newest(uri)) as mine:
        mine.put(rows((2, "later")))
    merge_generations(newest(uri))
    assert everywhere(uri) == [{9: "new", 2: "later"}] * 3


def test_a_writer_from_before_an_overwrite_is_fenced(uri: Path) -> None:
    old = writer(newest(uri))
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    with pytest.raises(WriterFencedError):
        old.put(rows((1, "late")))


def test_nothing_comes_back_after_a_restore(uri: Path) -> None:
    lance.dataset(uri, version=2).restore()
    assert seen(newest(uri), Freshness.BASE) == {1: "base", 2: "base"}
    expected = {1: "base", 2: "flushed"}
    assert seen(newest(uri), Freshness.FLUSHED) == expected
    merge_generations(newest(uri))
    assert seen(newest(uri), Freshness.BASE) == expected
    assert seen(newest(uri)) == {**expected, 3: "tail"}


def test_a_version_before_the_mem_wal_is_restored_with_it(uri: Path) -> None:
    lance.dataset(uri, version=1).restore()
    assert details_of(newest(uri)).progress() == {REGION: 1}
    assert seen(newest(uri)) == {1: "base", 2: "flushed", 3: "tail"}


def test_a_restored_version_with_another_key_ends_the_mem_wal(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(rows((1, "base")).replace_schema_metadata({}).cast(_keyless()), uri)
    lance.write_dataset(rows((1, "new")), uri, mode="overwrite")
    again(uri)
    old = writer(newest(uri))
    lance.dataset(uri, version=1).restore()
    with pytest.raises(InvalidRequestError, match="has no MemWAL"):
        details_of(newest(uri))
    with pytest.raises(WriterFencedError):
        old.put(rows((1, "late")))


def test_a_sealed_region_is_retired(uri: Path) -> None:
    writer(newest(uri)).seal()
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    again(uri)
    with writer(newest(uri)) as mine:
        mine.put(rows((1, "x")))
    assert seen(newest(uri)) == {9: "new", 1: "x"}


def test_a_region_with_entries_only_is_retired(uri: Path) -> None:
    for path in (uri / "_mem_wal" / str(REGION) / "manifest").iterdir():
        path.unlink()
    end_without_retirement(uri)
    retire_regions(newest(uri))
    manifest = RegionFiles.at(newest(uri).location, REGION).latest()
    assert manifest is not None
    assert manifest.generations == ()


def test_a_branch_begins_without_regions(uri: Path) -> None:
    lance.dataset(uri).create_branch("b")
    base = open_snapshot(Location.parse(uri), OnBranch("b"))
    assert details_of(base).progress() == {}
    assert seen(base) == {1: "merged", 2: "base"}
    with writer(base) as mine:
        mine.put(rows((5, "branch")))
    assert seen(open_snapshot(Location.parse(uri), OnBranch("b"))) == {
        1: "merged",
        2: "base",
        5: "branch",
    }
    assert 5 not in seen(newest(uri))
    merge_generations(base)
    found = seen(open_snapshot(Location.parse(uri), OnBranch("b")), Freshness.BASE)
    assert found == {1: "merged", 2: "base", 5: "branch"}


def test_a_clone_begins_without_regions(uri: Path, tmp_path: Path) -> None:
    lance.dataset(uri).shallow_clone(str(tmp_path / "c"), reference=newest(uri).version)
    assert list_regions(Location.parse(tmp_path / "c")) == ()
    with writer(newest(tmp_path / "c")) as mine:
        mine.put(rows((5, "clone")))
    merge_generations(newest(tmp_path / "c"))
    assert everywhere(tmp_path / "c") == [{1: "merged", 2: "base", 5: "clone"}] * 3


def _keyless() -> object:

    return pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.utf8())])


def test_a_repair_keeps_the_mem_wal(uri: Path) -> None:
    before = details_of(newest(uri))
    lance.dataset(uri).create_scalar_index("name", "BTREE")
    (folder,) = [path for path in (uri / "_indices").iterdir() if path.is_dir()]
    shutil.rmtree(folder)
    repair(Location.parse(uri))
    assert details_of(newest(uri)).progress() == before.progress()
    assert seen(newest(uri)) == {1: "merged", 2: "flushed", 3: "tail"}


def test_a_cleanup_leaves_the_regions(uri: Path) -> None:
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert seen(newest(uri)) == {1: "merged", 2: "flushed", 3: "tail"}
    assert [f for f in check_table(Location.parse(uri), versions="all") if f.path] == []


def test_regions_of_a_newer_mem_wal_are_not_retired(uri: Path) -> None:
    before = seen(newest(uri))
    with pytest.raises(AlreadyExistsError, match="already has a MemWAL"):
        retire_regions(newest(uri))
    assert seen(newest(uri)) == before
