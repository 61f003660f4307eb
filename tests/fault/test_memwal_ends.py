"""A MemWAL that ends while its process stops at any store call does not bring old rows back."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import LanceTableError, StorageUnavailableError, WriterFencedError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import has_mem_wal
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.view import Freshness
from lancelake.storage import disk_sync
from tests.fault.test_memwal_crashes import stores
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.memwal_tables import newest, rows, seen, writer

KEYLESS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.utf8())])
End = Callable[[Path], None]


def overwrite(uri: Path) -> None:
    """Replace the table by one row."""
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")


def restore(uri: Path) -> None:
    """Restore the version from before the key, which ends the MemWAL."""
    lance.dataset(uri, version=1).restore()


def restore_merged(uri: Path) -> None:
    """Restore the version from before a merge: the MemWAL goes on."""
    lance.dataset(uri, version=3).restore()


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table to be copied, with a merged generation, another one, and a tail."""
    uri = tmp_path_factory.mktemp("ends") / "kept.lance"
    lance.write_dataset(pa.table([[0], ["keyless"]], schema=KEYLESS), uri)
    lance.write_dataset(rows((1, "base"), (2, "base")), uri, mode="overwrite")
    base = newest(uri)
    mine = writer(initialize(base, bucketed(base, "id", 1)))
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(uri))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    return uri


BEFORE = {1: "merged", 2: "flushed", 3: "tail"}
UNDONE = {1: "base", 2: "flushed", 3: "tail"}


def stopped(
    kept: Path, tmp_path: Path, end: End, stop: Stop, error: Callable[[], BaseException]
) -> Iterator[tuple[str, Path]]:
    """Yield a table for each store call of a change, at which the change was stopped."""
    counting = FailingCalls()
    with stores(counting):
        end(Path(shutil.copytree(kept, tmp_path / "counted.lance")))
    assert counting.calls
    for number, call in enumerate(counting.calls):
        uri = Path(shutil.copytree(kept, tmp_path / f"{number}.lance"))
        calls = FailingCalls([number], stop=stop, error=error)
        with stores(calls), suppress(Crash, LanceTableError), warnings.catch_warnings():
            # A step after the commit that fails is reported as a warning.
            warnings.simplefilter("ignore", RuntimeWarning)
            end(uri)
        yield f"{stop.value} call {number}, {call}", uri
        shutil.rmtree(uri)


def ensure_writers_go_on(uri: Path, where: str) -> None:
    """A new writer goes on with what is seen, and a merge takes everything into the table."""
    found = seen(newest(uri))
    with writer(newest(uri)) as mine:
        mine.put(rows((5, "after")))
    merge_generations(newest(uri))
    for freshness in Freshness:
        assert seen(newest(uri), freshness) == {**found, 5: "after"}, where


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("error", [Crash, lambda: StorageUnavailableError("no reply")])
def test_a_new_mem_wal_has_no_row_from_before_an_overwrite(
    stop: Stop, error: Callable[[], BaseException], kept: Path, tmp_path: Path
) -> None:
    for where, uri in stopped(kept, tmp_path, overwrite, stop, error):
        if has_mem_wal(newest(uri)):
            assert seen(newest(uri)) == BEFORE, where
        else:
            initialize(newest(uri), bucketed(newest(uri), "id", 1))
            for freshness in Freshness:
                assert seen(newest(uri), freshness) == {9: "new"}, where
        ensure_writers_go_on(uri, where)


@pytest.mark.parametrize("stop", Stop)
def test_a_writer_from_before_an_overwrite_acknowledges_nothing(
    stop: Stop, kept: Path, tmp_path: Path
) -> None:
    open_writers = {}

    def end(uri: Path) -> None:
        # The log has the calls of the overwrite only.
        open_writers[uri] = writer(newest(uri))
        overwrite(uri)

    for where, uri in stopped(kept, tmp_path, end, stop, Crash):
        if uri not in open_writers or has_mem_wal(newest(uri)):
            continue
        with pytest.raises(WriterFencedError):
            open_writers[uri].put(rows((1, "late")))
        with pytest.raises(WriterFencedError):
            open_writers[uri].flush()
        initialize(newest(uri), bucketed(newest(uri), "id", 1))
        assert seen(newest(uri)) == {9: "new"}, where


@pytest.mark.parametrize("stop", Stop)
def test_a_restored_version_of_another_key_has_no_rows_of_the_mem_wal(
    stop: Stop, kept: Path, tmp_path: Path
) -> None:
    for where, uri in stopped(kept, tmp_path, restore, stop, Crash):
        if has_mem_wal(newest(uri)):
            assert seen(newest(uri)) == BEFORE, where
            continue
        collect_garbage(newest(uri))
        lance.dataset(uri).wal.initialize(buckets=1, key="id")
        assert seen(newest(uri)) == {0: "keyless"}, where
        ensure_writers_go_on(uri, where)


@pytest.mark.parametrize("stop", Stop)
def test_a_restore_undoes_what_was_merged_or_nothing(
    stop: Stop, kept: Path, tmp_path: Path
) -> None:
    for where, uri in stopped(kept, tmp_path, restore_merged, stop, Crash):
        assert seen(newest(uri)) in (BEFORE, UNDONE), where
        ensure_writers_go_on(uri, where)


@pytest.mark.parametrize("stop", Stop)
def test_an_initialization_that_stops_can_be_repeated(
    stop: Stop, kept: Path, tmp_path: Path
) -> None:
    replaced = Path(shutil.copytree(kept, tmp_path / "replaced.lance"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lancelake.events._commit_steps", [])
        overwrite(replaced)

    def begin(uri: Path) -> None:
        initialize(newest(uri), bucketed(newest(uri), "id", 1))

    for where, uri in stopped(replaced, tmp_path, begin, stop, Crash):
        if not has_mem_wal(newest(uri)):
            begin(uri)
        assert seen(newest(uri)) == {9: "new"}, where
        ensure_writers_go_on(uri, where)
