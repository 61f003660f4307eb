"""A crash at any store call of an operation leaves the old or the new version, consistent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.fault.table_works import WORKS, Seen, begin, clone_of, seen
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.official import RELEASES, OfficialPool, is_installed

# One in so many stops is shown to an official release as well.
JUDGED = 9
WRITES = frozenset({"put", "put_stream", "create", "copy", "delete", "delete_many", "swap"})


@dataclass(frozen=True)
class Tables:
    """A table that can be put back as it was."""

    kept: Path
    place: Path

    @property
    def uri(self) -> str:
        """The table."""
        return str(self.place / "table.lance")

    def put_back(self) -> None:
        """Undo everything that was done to the table."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.kept, self.place)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Make the table once."""
    folder = tmp_path_factory.mktemp("crashes")
    found = Tables(kept=folder / "kept", place=folder / "place")
    found.place.mkdir()
    begin(found.uri)
    shutil.copytree(found.place, found.kept)
    return found


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@contextmanager
def stores(calls: FailingCalls) -> Iterator[None]:
    """Let every store of local files be hit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", lambda uri: calls.on(LocalStore(uri)))
        yield


def ensure_sound(uri: str) -> None:
    """Nothing is wrong with the table, its branches and its clone."""
    for each in (uri, clone_of(uri)):
        if Path(each, "_versions").is_dir() and any(Path(each, "_versions").glob("*.manifest")):
            found = list(check(Location.parse(each), data=True, versions="all"))
            assert [f for f in found if f.severity is Severity.ERROR] == []


def ensure_agreed(uri: str, expected: Seen, officials: OfficialPool, release: str) -> None:
    """An official release opens, validates and reads the same."""
    if is_installed(release):
        body = officials(release).run(uri, JUDGE)
        assert body == {
            "version": expected["table"]["version"],
            "ids": sorted(row["id"] for row in expected["table"]["rows"]),
            "tags": expected["tags"],
        }


JUDGE = """
ds = lance.dataset(uri)
ds.validate()
result = {
    "version": ds.version,
    "ids": sorted(ds.to_table(columns=["id"])["id"].to_pylist()),
    "tags": {name: tag["version"] for name, tag in ds.tags.list().items()},
}
"""


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("name", WORKS)
def test_a_change_that_stops_at_any_store_call_leaves_the_old_or_the_new(
    name: str, stop: Stop, tables: Tables, officials: OfficialPool
) -> None:
    before, after, calls = whole(name, tables)
    for number in range(len(calls)):
        tables.put_back()
        with stores(FailingCalls([number], stop=stop, error=Crash)), pytest.raises(Crash):
            WORKS[name](tables.uri)
        found = seen(tables.uri)
        assert found in (before, after), f"stopped {stop.value} call {number}"
        if number % JUDGED and WRITES.isdisjoint(calls[: number + 1]):
            # Nothing was written yet, as at the stops before.
            assert found == before
            continue
        ensure_sound(tables.uri)
        if number % JUDGED == 0:
            release = RELEASES[number // JUDGED % len(RELEASES)]
            ensure_agreed(tables.uri, found, officials, release)
        if found == before:
            WORKS[name](tables.uri)
            assert seen(tables.uri) == after, f"done again after a stop at call {number}"
            ensure_sound(tables.uri)


@cache
def whole(name: str, tables: Tables) -> tuple[Seen, Seen, list[str]]:
    """Return what is there before and after, and the store calls that lie between."""
    tables.put_back()
    before = seen(tables.uri)
    calls = FailingCalls()
    with stores(calls):
        WORKS[name](tables.uri)
    return before, seen(tables.uri), [call for call, _ in calls.calls]
