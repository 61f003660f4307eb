"""Many concurrent writers on real stores commit exactly once each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancelake.clock import SystemClock, SystemIds
from lancelake.commit.candidate import CommitServices
from lancelake.commit.loop import commit, create_table
from lancelake.commit.snapshot import VersionLine, open_line
from lancelake.errors import AlreadyExistsError
from lancelake.format.operations import Overwrite
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.s3_server import s3_server
from tests.support.table_builder import (
    SCHEMA,
    WRITER,
    NoFacts,
    StoredDeletions,
    log,
    request,
    seed,
    set_config,
)

WRITERS = 4
COMMITS = 5


@pytest.fixture(params=["disk", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    if request.param == "disk":
        yield Location.parse(tmp_path / "table.lance")
        return
    with s3_server() as server:
        yield Location.parse(f"s3://{server.new_bucket()}/table.lance", server.storage_options)


def _means(line: VersionLine, number: int) -> CommitServices:
    return CommitServices(
        port=StoredDeletions(line.store),
        facts=NoFacts(),
        clock=SystemClock(),
        ids=SystemIds(number),
        writer=WRITER,
    )


def test_every_commit_of_many_writers_lands_exactly_once(location: Location) -> None:
    seed(open_line(location).store)

    def write(writer: int) -> list[int]:
        line = open_line(location)
        tools = _means(line, writer)
        versions = []
        for number in range(writer * COMMITS, (writer + 1) * COMMITS):
            asked = request(set_config(f"key {number}", "set"), unique=number, max_retries=100)
            versions.append(commit(line, asked, tools).version)
        return versions

    with ThreadPoolExecutor(WRITERS) as pool:
        told = [version for versions in pool.map(write, range(WRITERS)) for version in versions]
    commits = log(open_line(location))
    assert sorted(told) == list(range(2, WRITERS * COMMITS + 2))
    assert [c.snapshot.version for c in commits] == list(range(1, WRITERS * COMMITS + 2))
    assert len(commits[-1].snapshot.state.manifest.config) == WRITERS * COMMITS
    assert list(check(location, versions="all")) == []


def test_of_many_who_create_a_table_one_succeeds(location: Location) -> None:
    def create(writer: int) -> bool:
        line = open_line(location)
        asked = request(Overwrite(fragments=(), schema=SCHEMA), unique=writer, read_version=0)
        try:
            create_table(line, asked, _means(line, writer))
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        assert sum(pool.map(create, range(WRITERS))) == 1
