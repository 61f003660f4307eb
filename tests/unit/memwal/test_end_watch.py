from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import StorageUnavailableError, WriterFencedError
from lancelake.memwal import region
from lancelake.memwal.region import EndWatch, RegionFiles
from lancelake.storage import location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Session
from tests.support.failing_store import FailingCalls, Stop
from tests.support.manual_clock import ManualClock
from tests.support.memwal_tables import (
    REGION,
    end_without_retirement,
    new_table,
    newest,
    rows,
    writer,
)


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a MemWAL."""
    new_table(tmp_path / "t", (1, "base"))
    return tmp_path / "t"


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let looks run beside calls, as on stores over the network."""
    monkeypatch.setattr(region, "_LOCAL", ())


def watched(base: Snapshot, clock: ManualClock | None = None) -> EndWatch:
    """Return a watch that has looked once."""
    session = Session(clock=clock or ManualClock())
    watch = EndWatch(replace(base, location=replace(base.location, session=session)))
    watch.look()
    return watch


def test_a_put_after_the_end_is_not_acknowledged_and_writes_nothing(uri: Path) -> None:
    mine = writer(newest(uri))
    mine.put(rows((2, "before")))
    end_without_retirement(uri)
    files = RegionFiles.at(newest(uri).location, REGION)
    positions = files.positions()
    for _ in range(2):
        with pytest.raises(WriterFencedError, match="version 3 of the table has no MemWAL"):
            mine.put(rows((3, "late")))
    assert files.positions() == positions


def test_an_overwrite_ends_the_mem_wal(uri: Path) -> None:
    watch = watched(newest(uri))
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    with pytest.raises(WriterFencedError):
        watch.look()


def test_other_versions_do_not_stop_a_writer(uri: Path) -> None:
    mine = writer(newest(uri))
    for key in range(3):
        lance.write_dataset(rows((10 + key, "appended")), uri, mode="append")
        mine.put(rows((key, "put")))
    end_without_retirement(uri)
    with pytest.raises(WriterFencedError):
        mine.put(rows((3, "late")))


def test_an_end_whose_version_was_cleaned_up_is_found_after_a_while(uri: Path) -> None:
    clock = ManualClock()
    watch = watched(newest(uri), clock)
    end_without_retirement(uri)
    ended = newest(uri)
    lance.write_dataset(rows((9, "new")), uri, mode="append")
    (uri / "_versions" / ended.name.name).unlink()
    clock.pass_time(5.0)
    with pytest.raises(WriterFencedError):
        watch.look()


def test_a_look_at_a_table_without_new_versions_reads_nothing(
    uri: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = newest(uri)
    calls = FailingCalls()
    monkeypatch.setattr(location, "LocalStore", lambda where: calls.on(LocalStore(where)))
    watch = watched(base)
    calls.calls.clear()
    watch.look()
    assert [call for call, _ in calls.calls] == ["exists"]


def test_a_store_that_fails_once_is_asked_again(uri: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = newest(uri)
    calls = FailingCalls([0], stop=Stop.BEFORE, error=lambda: StorageUnavailableError("no reply"))
    monkeypatch.setattr(location, "LocalStore", lambda where: calls.on(LocalStore(where)))
    watched(base)
    assert len(calls.calls) > 1


@pytest.mark.usefixtures("beside")
def test_beside_a_call_the_end_is_reported_after_it(uri: Path) -> None:
    watch = watched(newest(uri))
    end_without_retirement(uri)
    done = []
    with pytest.raises(WriterFencedError), watch.during():
        done.append(1)
    assert done
    watch.close()


@pytest.mark.usefixtures("beside")
def test_the_error_of_the_call_itself_comes_first(uri: Path) -> None:
    watch = watched(newest(uri))
    end_without_retirement(uri)
    with pytest.raises(StorageUnavailableError), watch.during():
        raise StorageUnavailableError("no reply")
    watch.close()


@pytest.mark.usefixtures("beside")
def test_a_writer_with_looks_beside_its_puts_stops_too(uri: Path) -> None:
    mine = writer(newest(uri))
    mine.put(rows((2, "before")))
    end_without_retirement(uri)
    with pytest.raises(WriterFencedError):
        mine.put(rows((3, "late")))
    mine.close(flush=False)
