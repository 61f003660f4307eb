from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import WriterFencedError
from lancelake.memwal.collect import Collected, collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import RegionFiles
from lancelake.memwal.shape import RowShape
from lancelake.memwal.table_writer import Unit, last_batches, write_once
from lancelake.memwal.view import Freshness
from lancelake.storage.location import Session
from tests.support.manual_clock import ManualClock, age_files
from tests.support.memwal_tables import (
    NEW_REGION,
    REGION,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)

NOTHING = timedelta(0)
DAY_S = 86400.0


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    new_table(tmp_path / "t", (1, "base"), (2, "base"))
    return tmp_path / "t"


def collect(uri: Path, *, dry_run: bool = False, abandoned: timedelta | None = None) -> Collected:
    """Collect everything that is old enough by its order alone."""
    age_files(uri / "_mem_wal", 60.0)
    late = timedelta(days=7) if abandoned is None else abandoned
    return collect_garbage(newest(uri), older_than=NOTHING, abandoned_after=late, dry_run=dry_run)


def files_of(uri: Path) -> RegionFiles:
    return RegionFiles.at(newest(uri).location, REGION)


def merged(uri: Path) -> None:
    with writer(newest(uri)) as mine:
        mine.put(rows((1, "new"), (3, "new")))
        mine.delete(keys(2))
    merge_generations(newest(uri))


def test_merged_generations_and_flushed_entries_go(uri: Path) -> None:
    merged(uri)
    found = collect(uri)
    assert [r.trimmed for r in found.regions] == [(1,)]
    assert not [*uri.glob("_mem_wal/*/*_gen_*/**/*.lance")]
    assert files_of(uri).positions() == [2]  # the last entry stays
    for freshness in Freshness:
        assert seen(newest(uri), freshness) == {1: "new", 3: "new"}


def test_a_dry_run_removes_nothing_and_lists_the_same(uri: Path) -> None:
    merged(uri)
    before = set(uri.rglob("*"))
    planned = collect(uri, dry_run=True)
    assert set(uri.rglob("*")) == before
    assert {file.path for file in collect(uri).files} == {file.path for file in planned.files}


def test_unmerged_generations_and_tails_stay(uri: Path) -> None:
    mine = writer(newest(uri))
    mine.put(rows((1, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    assert collect(uri).regions[0].trimmed == ()
    assert seen(newest(uri)) == {1: "flushed", 2: "base", 3: "tail"}


def test_what_was_merged_since_stays(uri: Path) -> None:
    merged(uri)
    found = collect_garbage(newest(uri), older_than=timedelta(days=1))
    assert found.files == ()
    assert found.regions[0].trimmed == ()


def test_a_writer_that_was_replaced_long_ago_is_still_fenced(uri: Path) -> None:
    replaced = writer(newest(uri))
    for turn in range(4):
        with writer(newest(uri)) as mine:
            mine.put(rows((10 + turn, "x")))
    merge_generations(newest(uri))
    collect(uri)
    with pytest.raises(WriterFencedError):
        replaced.put(rows((1, "late")))
    assert 1 in seen(newest(uri))


def test_a_writer_checks_its_epoch_after_a_long_time(uri: Path) -> None:
    clock = ManualClock()
    replaced = writer(newest(uri, Session(clock=clock)))
    for turn in range(4):
        with writer(newest(uri)) as mine:
            mine.put(rows((10 + turn, "x")))
    merge_generations(newest(uri))
    age_files(uri / "_mem_wal", 30 * DAY_S)
    collect(uri)
    assert 1 not in files_of(uri).positions()  # nothing is left that collides
    clock.pass_time(30 * DAY_S)
    with pytest.raises(WriterFencedError):
        replaced.put(rows((1, "late")))


def test_writing_continues_after_a_collection(uri: Path) -> None:
    merged(uri)
    collect(uri)
    with writer(newest(uri)) as mine:
        mine.put(rows((2, "again")))
        assert mine.unflushed().memtables[-1].generation == 2
    assert seen(newest(uri), Freshness.FLUSHED) == {1: "new", 2: "again", 3: "new"}
    merge_generations(newest(uri))
    assert seen(newest(uri), Freshness.BASE) == {1: "new", 2: "again", 3: "new"}


def test_files_of_a_stopped_flush_go_when_they_are_old(uri: Path) -> None:
    merged(uri)
    left = uri / "_mem_wal" / str(REGION) / "0123abcd_gen_2" / "data" / "x.lance"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    collect(uri)
    assert left.exists()
    age_files(uri / "_mem_wal", 8 * DAY_S)
    collect(uri)
    assert not left.exists()


def test_folders_of_other_programs_stay(uri: Path) -> None:
    merged(uri)
    other = uri / "_mem_wal" / str(REGION) / "notes" / "x.txt"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"x")
    age_files(uri / "_mem_wal", 30 * DAY_S)
    collect(uri)
    assert other.exists()


def test_old_manifests_go_as_long_as_the_hint_leads_to_a_later_one(uri: Path) -> None:
    for turn in range(12):
        with writer(newest(uri)) as mine:
            mine.put(rows((turn, "x")))
    merge_generations(newest(uri))
    last = files_of(uri).latest()
    assert last is not None
    age_files(uri / "_mem_wal", 8 * DAY_S)
    collect(uri)
    assert files_of(uri).manifest(1) is None
    now = files_of(uri).latest()
    assert now is not None
    assert now.version == last.version + 1
    assert now.writer_epoch == last.writer_epoch


def test_manifests_stay_without_a_usable_hint(uri: Path) -> None:
    for turn in range(12):
        with writer(newest(uri)) as mine:
            mine.put(rows((turn, "x")))
    (hint,) = uri.glob("_mem_wal/*/manifest/version_hint.json")
    hint.write_text('{"version":1}')
    age_files(uri / "_mem_wal", 8 * DAY_S)
    collect(uri)
    assert files_of(uri).manifest(1) is not None


def test_the_newest_batches_of_queries_survive(uri: Path) -> None:
    base = newest(uri)
    shape = RowShape.of(base)
    for batch in range(3):
        unit = Unit(query="q", batch=batch)
        write_once(base, NEW_REGION, shape.upserts(rows((batch, "x"))), unit, flushed_rows=1)
    merged(uri)
    age_files(uri / "_mem_wal", 30 * DAY_S)
    collect(uri)
    assert last_batches(RegionFiles.at(newest(uri).location, NEW_REGION.region_id)) == {"q": 2}


def test_regions_of_a_table_without_a_mem_wal_are_collected(uri: Path) -> None:
    merged(uri)
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    collect(uri)
    assert not [*uri.glob("_mem_wal/*/*_gen_*/**/*.lance")]


def test_a_reader_of_an_old_version_gets_an_error(uri: Path) -> None:
    before: Snapshot = newest(uri)
    merged(uri)
    collect(uri)
    with pytest.raises(Exception, match="have been removed since"):
        seen(before, Freshness.FLUSHED)
    assert seen(before, Freshness.BASE) == {1: "base", 2: "base"}
