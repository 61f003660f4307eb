"""Statuses of conditional puts on S3: every caller goes on, or reports the error with its type.

The suite has one status of each meaning; `LANCELAKE_PUT_STATUSES=all` has all that clients know.
`tests/unit/storage/test_cloud.py` has the meaning of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

import lancelake.pylance as lance
import lancelake.storage.location as opening
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.errors import (
    LanceTableError,
    StorageDeniedError,
    StorageError,
    UnsupportedError,
)
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.storage.location import Location
from lancelake.storage.options import RetryingStore
from lancelake.table.config import migrate_manifest_names
from lancelake.table.index.parallel import BuildRecord
from tests.support.memwal_tables import INLINE, rows, seen
from tests.support.s3_server import S3Server, s3_server
from tests.support.set_clock import ManualClock

ALL = os.environ.get("LANCELAKE_PUT_STATUSES") == "all"
CONFLICT = 409
UNKNOWN = (408, 425, 429, 500, 502, 503, 504, 520, 599) if ALL else (503,)
REFUSED: dict[int, type[LanceTableError]] = {403: StorageDeniedError}
if ALL:
    others = dict.fromkeys((400, 402, 406, 410, 411, 413, 418, 422, 451), StorageError)
    REFUSED |= {**others, 401: StorageDeniedError, 405: UnsupportedError, 501: UnsupportedError}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture(autouse=True)
def retries_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        opening,
        "RetryingStore",
        lambda *args, **options: RetryingStore(*args, **{**options, "clock": ManualClock()}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table on the server."""

    uri: str
    options: dict[str, str]

    @property
    def location(self) -> Location:
        return Location.parse(self.uri, self.options)

    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.uri, storage_options=self.options)

    def newest(self) -> Snapshot:
        return open_snapshot(self.location, Latest())


@pytest.fixture
def place(server: S3Server) -> Iterator[Place]:
    made = Place(uri=f"s3://{server.new_bucket()}/t.lance", options=server.storage_options)
    lance.write_dataset(rows((1, "base")), made.uri, storage_options=made.options)
    base = made.newest()
    initialize(base, bucketed(base, "id", 1))
    yield made
    server.faults.end()


def create(place: Place) -> None:
    uri = f"{place.uri}/other.lance"
    lance.write_dataset(rows((1, "new")), uri, storage_options=place.options)


def append(place: Place) -> None:
    place.dataset().insert(rows((2, "more")))


def tag(place: Place) -> None:
    place.dataset().tags.create("first", 1)
    place.dataset().tags.update("first", 1)


def branch(place: Place) -> None:
    place.dataset().create_branch("dev")


def write_ahead(place: Place) -> None:
    for turn in range(2):
        with TableWriter(place.newest(), INLINE) as mine:
            mine.put(rows((3, f"{turn}")))
    merge_generations(place.newest())


def migrate(place: Place) -> None:
    uri = f"{place.uri}/old.lance"
    options = place.options
    lance.write_dataset(rows(), uri, storage_options=options, enable_v2_manifest_paths=False)
    assert migrate_manifest_names(Location.parse(uri, options)) == 1


def claim_a_build(place: Place) -> None:
    assert BuildRecord(location=place.location, unique=UUID(int=1)).claim()


CALLERS = (create, append, tag, branch, write_ahead, migrate, claim_a_build)
each_caller = pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.__name__)


def expected_rows(caller: Callable[[Place], None]) -> dict[int, str | None]:
    return {1: "base", **{append: {2: "more"}, write_ahead: {3: "1"}}.get(caller, {})}


@each_caller
@pytest.mark.parametrize("status", (CONFLICT, *UNKNOWN))
def test_a_request_that_was_not_carried_out_is_made_again(
    caller: Callable[[Place], None], status: int, server: S3Server, place: Place
) -> None:
    server.faults.begin(status, burst=2)
    caller(place)
    assert server.faults.hits >= 2
    assert seen(place.newest()) == expected_rows(caller)


@each_caller
@pytest.mark.parametrize("status", UNKNOWN)
def test_a_request_whose_reply_was_lost_is_not_made_twice(
    caller: Callable[[Place], None], status: int, server: S3Server, place: Place
) -> None:
    server.faults.begin(status, burst=1, is_carried_out=True)
    caller(place)
    assert seen(place.newest()) == expected_rows(caller)
    assert place.newest().version == 3 if caller in (append, write_ahead) else 2


@each_caller
@pytest.mark.parametrize(("status", "error"), REFUSED.items())
def test_a_request_that_cannot_succeed_is_not_repeated(
    caller: Callable[[Place], None],
    status: int,
    error: type[LanceTableError],
    server: S3Server,
    place: Place,
) -> None:
    server.faults.begin(status, burst=1000)
    with pytest.raises(error):
        caller(place)
    assert server.faults.hits == 1
    server.faults.end()
    assert seen(place.newest()) == {1: "base"}
