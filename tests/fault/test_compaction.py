"""Interrupted and failed compactions leave a consistent table with the same rows."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.official import RELEASES, OfficialPool, is_installed

JUDGED = 7
OPTIONS = {"target_rows_per_fragment": 20, "num_threads": 1}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table to be copied: six fragments of ten rows, some deleted."""
    uri = tmp_path_factory.mktemp("compaction") / "kept.lance"
    for number in range(6):
        ids = pa.array(range(number * 10, number * 10 + 10), pa.int64())
        mode = "append" if number else "create"
        lance.write_dataset(
            pa.table({"id": ids}), uri, mode=mode, enable_stable_row_ids=request.param
        )
    lance.dataset(uri).delete("id IN (3, 25)")
    return uri


@contextmanager
def stores(calls: FailingCalls) -> Iterator[None]:
    """Let every store of local files be hit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", lambda uri: calls.on(LocalStore(uri)))
        yield


def compact(uri: Path, **options: object) -> None:
    lance.dataset(uri).optimize.compact_files(**(OPTIONS | options))  # type: ignore[arg-type]  # options by name


def rows(uri: Path) -> pa.Table:
    ds = lance.dataset(uri)
    ids = ["_rowid"] if ds.has_stable_row_ids else []
    return ds.to_table(columns=["id", *ids]).sort_by("id")


def ensure_sound(uri: Path, expected: pa.Table) -> None:
    assert rows(uri) == expected
    found = check(Location.parse(uri), data=True, versions="all")
    assert [f for f in found if f.severity is Severity.ERROR] == []


def calls_of(kept: Path, folder: Path, **options: object) -> list[tuple[str, str]]:
    uri = Path(shutil.copytree(kept, folder / "counted.lance"))
    calls = FailingCalls()
    with stores(calls):
        compact(uri, **options)
    return calls.calls


WAYS: dict[str, dict[str, object]] = {
    "in parts": {"groups_per_commit": 1},
    "sorted": {"sort_by": "id"},
}


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("stop", Stop)
def test_a_crash_at_any_store_call_leaves_all_rows_and_can_be_resumed(
    stop: Stop, way: str, kept: Path, tmp_path: Path, officials: OfficialPool
) -> None:
    expected, options = rows(kept), WAYS[way]
    for number in range(len(calls_of(kept, tmp_path, **options))):
        uri = Path(shutil.copytree(kept, tmp_path / f"{number}.lance"))
        with stores(FailingCalls([number], stop=stop, error=Crash)), pytest.raises(Crash):
            compact(uri, **options)
        ensure_sound(uri, expected)
        compact(uri)
        ensure_sound(uri, expected)
        assert len(lance.dataset(uri).get_fragments()) == 2
        release = RELEASES[number % len(RELEASES)]
        if number % JUDGED == 0 and is_installed(release):
            assert officials(release).read(uri).sort_by("id")["id"] == expected["id"]


@pytest.mark.parametrize("stop", Stop)
def test_a_store_that_fails_once_leaves_all_rows(stop: Stop, kept: Path, tmp_path: Path) -> None:
    expected = rows(kept)
    for number in range(len(calls_of(kept, tmp_path, groups_per_commit=1))):
        uri = Path(shutil.copytree(kept, tmp_path / f"{number}.lance"))
        with stores(FailingCalls([number], stop=stop)), suppress(LanceTableError):
            compact(uri, groups_per_commit=1)
        ensure_sound(uri, expected)


def test_what_was_committed_before_a_crash_is_not_done_again(kept: Path, tmp_path: Path) -> None:
    uri = Path(shutil.copytree(kept, tmp_path / "parts.lance"))
    calls = calls_of(kept, tmp_path, groups_per_commit=1)
    commits = [n for n, call in enumerate(calls) if call[0] == "create" and "_versions" in call[1]]
    with stores(FailingCalls([commits[-1]], error=Crash)), pytest.raises(Crash):
        compact(uri, groups_per_commit=1)
    landed = [f.fragment_id for f in lance.dataset(uri).get_fragments()][-1]
    metrics = lance.dataset(uri).optimize.compact_files(**OPTIONS)  # type: ignore[arg-type]  # options by name
    assert metrics.fragments_removed == 3
    assert landed in [f.fragment_id for f in lance.dataset(uri).get_fragments()]


DELETED = (1, 11, 21, 31, 41, 51)
UPDATED = (2, 22, 42)


def append(uri: Path) -> None:
    for first in range(100, 130, 5):
        ids = pa.array(range(first, first + 5), pa.int64())
        lance.write_dataset(pa.table({"id": ids}), uri, mode="append")


def delete(uri: Path) -> None:
    for number in DELETED:
        lance.dataset(uri).delete(f"id = {number}", conflict_retries=50)


def update(uri: Path) -> None:
    for number in UPDATED:
        changed = {"id": "id + 1000"}
        lance.dataset(uri).update(changed, where=f"id = {number}", conflict_retries=50)


def compact_often(uri: Path) -> None:
    for _ in range(5):
        compact(uri)


def run_together(works: list[Callable[[Path], None]], uri: Path) -> list[BaseException]:
    """Do works on threads of their own, and return what they raised."""
    failures: list[BaseException] = []

    def run(work: Callable[[Path], None]) -> None:
        try:
            work(uri)
        except BaseException as error:  # noqa: BLE001  # returned
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_writers_at_the_same_time_lose_nothing_and_nothing_returns(
    kept: Path, tmp_path: Path
) -> None:
    uri = Path(shutil.copytree(kept, tmp_path / "busy.lance"))
    works = [append, delete, update, compact_often, compact_often]
    assert run_together(works, uri) == []
    moved = {number + 1000 for number in UPDATED}
    expected = {*range(60), *range(100, 130), *moved} - {3, 25, *UPDATED, *DELETED}
    assert rows(uri)["id"].to_pylist() == sorted(expected)
    ensure_sound(uri, rows(uri))
