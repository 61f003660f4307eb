from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, WriterFencedError
from lancelake.memwal import table_writer
from lancelake.memwal.region import RegionFiles
from lancelake.memwal.shape import RowShape
from lancelake.memwal.table_writer import Unit, last_batches, write_once
from lancelake.memwal.view import Freshness
from tests.support.memwal_tables import NEW_REGION, REGION, new_table, rows, seen, writer


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return new_table(tmp_path / "t", (1, "base"))


def write(base: Snapshot, batch: int, value: str, *, query: str = "q", flushed: int = 99) -> bool:
    batches = RowShape.of(base).upserts(rows((1, value)))
    unit = Unit(query=query, batch=batch)
    return write_once(base, NEW_REGION, batches, unit, flushed_rows=flushed)


def test_a_batch_is_written_once(base: Snapshot) -> None:
    assert write(base, 0, "first")
    assert not write(base, 0, "again")
    assert seen(base) == {1: "first"}


def test_an_older_batch_does_not_come_back(base: Snapshot) -> None:
    write(base, 0, "0")
    write(base, 1, "1")
    assert not write(base, 0, "late")
    assert seen(base) == {1: "1"}


def test_queries_have_their_own_batches(base: Snapshot) -> None:
    write(base, 5, "a", query="a")
    assert write(base, 0, "b", query="b")
    assert not write(base, 5, "again", query="a")
    assert last_batches(RegionFiles.at(base.location, NEW_REGION.region_id)) == {"a": 5, "b": 0}


def test_the_batch_is_known_after_a_flush_and_other_writers(base: Snapshot) -> None:
    write(base, 0, "first", flushed=1)
    with writer(base) as mine:
        mine.put(rows((2, "other")))
    assert not write(base, 0, "again")
    assert seen(base, Freshness.FLUSHED) == {1: "first", 2: "other"}


def test_the_tail_is_flushed_when_it_is_long(base: Snapshot) -> None:
    write(base, 0, "0", flushed=2)
    assert seen(base, Freshness.FLUSHED) == {1: "base"}
    write(base, 1, "1", flushed=2)
    assert seen(base, Freshness.FLUSHED) == {1: "1"}


def test_queries_that_wrote_last_are_kept(base: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_writer, "_MOST_QUERIES", 2)
    for query in "abc":
        write(base, 0, query, query=query)
    assert last_batches(RegionFiles.at(base.location, REGION)) == {"b": 0, "c": 0}


def test_a_fenced_attempt_looks_for_the_batch_again(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = table_writer.last_batches
    others = iter([lambda: write(base, 0, "other")])

    def after_another(files: RegionFiles) -> object:
        found = looked(files)
        act = next(others, None)
        if act is not None:
            act()
        return found

    monkeypatch.setattr(table_writer, "last_batches", after_another)
    assert not write(base, 0, "mine")
    assert seen(base) == {1: "other"}


def test_a_batch_that_is_always_fenced_fails(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fenced(*_: object, **__: object) -> None:
        raise WriterFencedError("another writer")

    monkeypatch.setattr(table_writer, "RegionWriter", fenced)
    with pytest.raises(ContentionError, match="was fenced 5 times"):
        write(base, 0, "x")


def test_a_batch_without_rows_writes_nothing(base: Snapshot) -> None:
    assert not write_once(base, NEW_REGION, (), Unit(query="q", batch=0))
    assert RegionFiles.at(base.location, REGION).latest() is None
