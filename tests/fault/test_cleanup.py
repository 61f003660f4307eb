"""Interrupted cleanups: remaining versions are complete, and the next cleanup finishes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.engine.port import LocalEngine
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.maintenance.cleanup.plan import CleanupPolicy
from lancelake.maintenance.cleanup.run import clean_up
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.support import cleanup_oracle as oracle
from tests.support.failing_store import Crash, FailingCalls, InterceptedStore, Stop
from tests.support.official import RELEASES, OfficialPool, is_installed

JUDGED = 9
POLICY = CleanupPolicy(retain_versions=2, error_if_tagged_old_versions=False)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table to be copied: overwritten, deleted from, indexed, tagged."""
    uri = tmp_path_factory.mktemp("cleanup") / "kept.lance"
    for number in range(5):
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        lance.write_dataset(rows, uri, mode="overwrite" if number in {0, 2} else "append")
    official.dataset(str(uri)).create_scalar_index("id", "BTREE")
    lance.dataset(uri).delete("id % 7 = 0")
    official.dataset(str(uri)).create_scalar_index("id", "BTREE", replace=True)
    lance.dataset(uri).optimize.compact_files(num_threads=1)
    lance.dataset(uri).tags.create("first", 2)
    return uri


@contextmanager
def stores(calls: FailingCalls) -> Iterator[None]:
    """Let every store of local files be hit, one file at a time where many are removed."""

    def opened(uri: str) -> InterceptedStore:
        return _OneByOne(calls.on(LocalStore(uri)), lambda _, __, carry_out: carry_out())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", opened)
        yield


class _OneByOne(InterceptedStore):
    """Removes files in calls of their own, so that a stop may fall between any two."""

    def delete_many(self, paths: object) -> None:
        for path in paths:  # type: ignore[attr-defined]  # paths
            self.delete(path)


def clean(uri: Path, policy: CleanupPolicy = POLICY) -> None:
    engine = LocalEngine(parallelism=1)
    clean_up(Location.parse(uri), policy, engine=engine)


def rows(uri: Path) -> dict[int, pa.Table]:
    """Read every version that is there."""
    versions = [version["version"] for version in lance.dataset(uri).versions()]
    return {v: lance.dataset(uri, version=v).to_table() for v in versions}


def files(uri: Path) -> set[str]:
    return {path.relative_to(uri).as_posix() for path in uri.rglob("*") if path.is_file()}


def copied(kept: Path, target: Path) -> Path:
    return Path(shutil.copytree(kept, target))


def number_of_calls(kept: Path, folder: Path) -> int:
    uri = copied(kept, folder / "counted.lance")
    calls = FailingCalls()
    with stores(calls):
        clean(uri)
    return len(calls.calls)


def ensure_sound(uri: Path, expected: dict[int, pa.Table]) -> None:
    found = rows(uri)
    assert found == {version: expected[version] for version in found}
    assert oracle.missing(uri) == []
    problems = check(Location.parse(uri), data=True, versions="all")
    assert [f for f in problems if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize("stop", Stop)
def test_a_crash_at_any_store_call_leaves_whole_versions_and_the_next_cleanup_finishes(
    stop: Stop, kept: Path, tmp_path: Path, officials: OfficialPool
) -> None:
    expected = rows(kept)
    done = copied(kept, tmp_path / "done.lance")
    clean(done)
    for number in range(number_of_calls(kept, tmp_path)):
        uri = copied(kept, tmp_path / f"{number}.lance")
        with stores(FailingCalls([number], stop=stop, error=Crash)), pytest.raises(Crash):
            clean(uri)
        ensure_sound(uri, expected)
        release = RELEASES[number % len(RELEASES)]
        if number % JUDGED == 0 and is_installed(release):
            for version, table in rows(uri).items():
                assert officials(release).read(uri, version=version) == table
        clean(uri)
        assert files(uri) == files(done)
        shutil.rmtree(uri)


def test_a_store_that_fails_once_leaves_whole_versions_and_the_next_cleanup_finishes(
    kept: Path, tmp_path: Path
) -> None:
    expected = rows(kept)
    done = copied(kept, tmp_path / "done.lance")
    clean(done)
    for number in range(number_of_calls(kept, tmp_path)):
        uri = copied(kept, tmp_path / f"{number}.lance")
        with stores(FailingCalls([number])), suppress(LanceTableError):
            clean(uri)
        ensure_sound(uri, expected)
        clean(uri)
        assert files(uri) == files(done)
        shutil.rmtree(uri)


def test_files_that_the_store_does_not_remove_are_reported_and_removed_later(
    kept: Path, tmp_path: Path
) -> None:
    uri = copied(kept, tmp_path / "table.lance")
    total = number_of_calls(kept, tmp_path)
    refused = FailingCalls(range(total * 2), only=frozenset({"delete_many", "delete"}))

    def opened(root: str) -> InterceptedStore:
        # Manifests go, their files do not.
        return _Manifests(refused.on(LocalStore(root)), LocalStore(root))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", opened)
        report = clean_up(Location.parse(uri), POLICY)
    assert len(report.failed) > 0
    assert set(report.totals) == {"manifest"}
    again = clean_up(Location.parse(uri), POLICY)
    assert again.failed == frozenset()
    assert again.versions == ()
    assert again.files_removed == len(report.failed)
    assert not any(path.startswith("_cleanup/") for path in files(uri))


class _Manifests(InterceptedStore):
    """Removes manifests through another store than the rest."""

    def __init__(self, inner: object, other: LocalStore) -> None:
        super().__init__(inner, lambda _, __, carry_out: carry_out())  # type: ignore[arg-type]  # a store
        self._other = other

    def delete_many(self, paths: object) -> None:
        every = tuple(paths)  # type: ignore[arg-type, var-annotated]  # paths
        is_manifests = all(path.startswith("_versions/") for path in every)
        (self._other if is_manifests else self._inner).delete_many(every)


def test_a_reader_that_opened_an_old_version_within_the_window_finishes(
    kept: Path, tmp_path: Path
) -> None:
    uri = copied(kept, tmp_path / "table.lance")
    reader = lance.dataset(uri, version=3).scanner(batch_size=1).to_reader()
    first = reader.read_next_batch()
    clean_up(Location.parse(uri), CleanupPolicy())
    assert first.num_rows + reader.read_all().num_rows == 10
