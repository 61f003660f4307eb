"""A MemWAL whose writers and mergers stop at any store call keeps what was acknowledged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.view import Freshness
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.memwal_tables import keys, new_table, newest, rows, seen, writer

Rows = dict[int, str | None]
START: Rows = {1: "base", 2: "base"}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table to be copied, with rows in the base, in a generation and in the WAL."""
    uri = tmp_path_factory.mktemp("memwal") / "kept.lance"
    base = new_table(uri, *START.items())
    mine = writer(base)
    mine.put(rows((3, "flushed"), (1, "flushed")))
    mine.flush()
    mine.put(rows((4, "tail")))
    return uri


BEFORE: Rows = {1: "flushed", 2: "base", 3: "flushed", 4: "tail"}


class Acknowledged:
    """Rows that must be there: of the calls that returned, and perhaps of one that did not."""

    def __init__(self) -> None:
        self.rows = dict(BEFORE)
        self.possible = [self.rows]

    def put(self, call: Callable[[], None], changes: Rows, gone: tuple[int, ...] = ()) -> None:
        after = {k: v for k, v in {**self.rows, **changes}.items() if k not in gone}
        self.possible = [self.rows, after]
        call()
        self.rows, self.possible = after, [after]


def _work(uri: Path, model: Acknowledged) -> None:
    mine = writer(newest(uri))
    model.put(lambda: mine.put(rows((5, "new"), (3, "new"))), {5: "new", 3: "new"})
    model.put(lambda: mine.delete(keys(1, 4)), {}, (1, 4))
    mine.flush()
    merge_generations(newest(uri))
    model.put(lambda: mine.put(rows((1, "again"))), {1: "again"})
    mine.close()
    merge_generations(newest(uri))


@contextmanager
def stores(calls: FailingCalls) -> Iterator[None]:
    """Let every store of local files be hit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", lambda uri: calls.on(LocalStore(uri)))
        yield


def _calls(kept: Path, tmp_path: Path) -> int:
    calls = FailingCalls()
    counted = Path(shutil.copytree(kept, tmp_path / "counted.lance"))
    model = Acknowledged()
    with stores(calls):
        _work(counted, model)
    assert seen(newest(counted), Freshness.BASE) == model.rows
    return len(calls.calls)


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("error", [Crash, lambda: StorageUnavailableError("no reply")])
def test_acknowledged_rows_survive_a_stop_at_any_store_call(
    stop: Stop, error: Callable[[], BaseException], kept: Path, tmp_path: Path
) -> None:
    for number in range(_calls(kept, tmp_path)):
        uri = Path(shutil.copytree(kept, tmp_path / f"{number}.lance"))
        model = Acknowledged()
        calls = FailingCalls([number], stop=stop, error=error)
        with stores(calls), suppress(Crash, LanceTableError):
            _work(uri, model)
        where = f"stopped {stop.value} call {number}"
        found = seen(newest(uri))
        assert found in model.possible, where
        # A new writer goes on, and a merge brings everything into the table.
        with writer(newest(uri)) as mine:
            mine.put(rows((9, "after")))
        merge_generations(newest(uri))
        for freshness in Freshness:
            assert seen(newest(uri), freshness) == {**found, 9: "after"}, where
        shutil.rmtree(uri)
