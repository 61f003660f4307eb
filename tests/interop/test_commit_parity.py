"""Official releases read our versions and commit after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.candidate import CommitResult
from lancelake.commit.loop import commit, commit_detached, create_table
from lancelake.commit.ref_files import RefTarget, create_tag
from lancelake.commit.snapshot import VersionLine, open_line
from lancelake.format import layout
from lancelake.format.ids import Version
from lancelake.format.operations import Append, Operation, Overwrite
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.set_clock import ManualClock
from tests.support.table_builder import (
    SCHEMA,
    data_file_bytes,
    fragment,
    log,
    means,
    request,
    set_config,
)

APPEND = """
more = pa.table({"id": pa.array([7], pa.int64()), "v": pa.array([7], pa.int32())})
result = lance.write_dataset(more, uri, mode="append").version
"""
READ = """
ds = lance.dataset(uri, version=version)
result = [ds.version if version is None or isinstance(version, str) else 0, ds.count_rows()]
"""


@pytest.fixture
def line(tmp_path: Path) -> VersionLine:
    made = open_line(Location.parse(tmp_path / "t.lance"))
    for number in (1, 2, 3):
        made.store.put(layout.data_file(fragment(number).files[0].path), data_file_bytes())
    first = Overwrite(fragments=(fragment(1),), schema=SCHEMA)
    create_table(made, request(first, unique=1, read_version=0), means(made.store))
    return made


def _commit(
    line: VersionLine, operation: Operation, *, unique: int, read_version: int
) -> CommitResult:
    asked = request(operation, unique=unique, read_version=read_version)
    return commit(line, asked, means(line.store, seed=unique))


def test_commits_of_both_follow_each_other(official: Official, line: VersionLine) -> None:
    uri = line.location.uri
    assert _commit(line, Append(fragments=(fragment(2),)), unique=2, read_version=1).version == 2
    assert official.run(uri, APPEND) == 3
    assert _commit(line, set_config("a", "1"), unique=3, read_version=1).version == 4
    assert official.run(uri, READ, version=None) == [4, 21]
    assert [landed.snapshot.version for landed in log(line)] == [1, 2, 3, 4]
    found = check(line.location, versions="all")
    assert [f for f in found if f.severity is not Severity.INFO] == []


def test_official_readers_see_a_detached_version(official: Official, line: VersionLine) -> None:
    base = log(line)[0].snapshot
    asked = request(Append(fragments=(fragment(3),)), unique=2)
    made = commit_detached(line, asked, means(line.store), base=base)
    assert official.run(line.location.uri, READ, version=made.version) == [0, 20]
    assert official.run(line.location.uri, READ, version=None) == [1, 10]


def test_official_readers_follow_a_tag(official: Official, line: VersionLine) -> None:
    _commit(line, Append(fragments=(fragment(2),)), unique=2, read_version=1)
    size = log(line)[0].snapshot.manifest_size
    target = RefTarget(branch=None, version=Version(1), manifest_size=size)
    create_tag(line.store, "first", target, clock=ManualClock())
    assert official.run(line.location.uri, READ, version="first") == [1, 10]
