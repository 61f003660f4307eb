"""The version that a reference resolves to."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from lancelake.commit.snapshot import (
    AsOf,
    AtTag,
    AtVersion,
    Latest,
    OnBranch,
    Reference,
    list_versions,
    open_existing,
    open_snapshot,
    time_reference,
)
from lancelake.errors import (
    InvalidNameError,
    InvalidRequestError,
    RefNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancelake.format.layout import parse_manifest_name
from lancelake.scan.live_rows import count_rows
from lancelake.storage.location import Location
from lancelake.table.history import history
from tests.support.read_tables import versioned


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """Return a table of four versions, with tags and a branch."""
    path = tmp_path_factory.mktemp("open") / "t.lance"
    versioned(path)
    return Location.parse(path)


def found(place: Location, reference: Reference) -> tuple[str | None, int, int]:
    snapshot = open_snapshot(place, reference)
    return snapshot.branch, snapshot.version, count_rows(snapshot)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (Latest(), (None, 4, 5)),
        (AtVersion(1), (None, 1, 3)),
        (AtVersion(4), (None, 4, 5)),
        (AtTag("first"), (None, 1, 3)),
        (AtTag("then"), (None, 2, 6)),
        (AtTag("aside"), ("feat/x", 3, 9)),
        (OnBranch(None), (None, 4, 5)),
        (OnBranch("main"), (None, 4, 5)),
        (OnBranch("main", 2), (None, 2, 6)),
        (OnBranch("feat/x"), ("feat/x", 3, 9)),
        (OnBranch("feat/x", 2), ("feat/x", 2, 6)),
        (AsOf(2**62), (None, 4, 5)),
    ],
    ids=str,
)
def test_reference_leads_to_a_version(
    place: Location, reference: Reference, expected: tuple[str | None, int, int]
) -> None:
    assert found(place, reference) == expected


@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        (AtVersion(99), VersionNotFoundError, "version 99 was not found; the latest is 4"),
        (AtVersion(0), VersionNotFoundError, "version 0"),
        (AtVersion(-1), VersionNotFoundError, "version"),
        (AtVersion(2**64), VersionNotFoundError, "version"),
        (AtVersion(2**63 + 5), VersionNotFoundError, "no such version"),
        (OnBranch("feat/x", 1), VersionNotFoundError, "version 1 was not found; the latest is 3"),
        (AtTag("nosuch"), RefNotFoundError, "tag nosuch does not exist"),
        (OnBranch("nosuch"), RefNotFoundError, "branch nosuch does not exist"),
        (AtTag(""), InvalidNameError, "empty"),
        (AtTag("../first"), InvalidNameError, "first"),
        (OnBranch("../x"), InvalidNameError, "not a valid name"),
        (AsOf(0), VersionNotFoundError, "earlier than the first version"),
    ],
    ids=str,
)
def test_reference_to_nothing_is_refused(
    place: Location, reference: Reference, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        open_snapshot(place, reference)


def test_branch_refers_to_tags_and_other_branches_of_its_table(place: Location) -> None:
    branch = open_snapshot(place, OnBranch("feat/x"))
    for reference, expected in ((AtTag("first"), 1), (OnBranch(None), 4), (AtVersion(2), 2)):
        again = open_snapshot(branch.location, reference, main=branch.main_location)
        assert again.version == expected


def test_branch_is_a_table_of_its_own(place: Location) -> None:
    root = open_snapshot(place, OnBranch("feat/x")).location
    assert found(root, Latest()) == ("feat/x", 3, 9)


def test_detached_version_is_opened_by_its_number_and_is_not_the_latest(place: Location) -> None:
    (name,) = (Path(place.uri) / "_versions").glob("d*.manifest")
    parsed = parse_manifest_name(name.name)
    assert parsed is not None
    assert found(place, AtVersion(parsed.version)) == (None, parsed.version, 9)
    assert [v.version for v in list_versions(place)] == [1, 2, 3, 4]


def test_version_that_was_written_before_a_time_is_found(place: Location) -> None:
    for snapshot in history(place):
        written_ns = snapshot.manifest.timestamp_ns or 0
        assert open_snapshot(place, AsOf(written_ns // 1000 + 1)).version == snapshot.version


def test_every_version_of_the_microsecond_of_a_time_is_included(place: Location) -> None:
    for snapshot in history(place):
        written = snapshot.manifest.timestamp
        assert written is not None
        assert open_snapshot(place, time_reference(written)).version == snapshot.version
        assert open_snapshot(place, time_reference(written.isoformat())).version == snapshot.version


def test_time_just_before_a_version_excludes_it(place: Location) -> None:
    newest = open_snapshot(place, Latest()).manifest.timestamp_ns or 0
    assert open_snapshot(place, AsOf(newest // 1000 - 1)).version == 3


@pytest.mark.parametrize("reference", [Latest(), AtVersion(1), AsOf(1)], ids=str)
def test_folder_without_a_table_is_refused(tmp_path: Path, reference: Reference) -> None:
    with pytest.raises(TableNotFoundError, match=r"nothing\.lance was not found"):
        open_snapshot(Location.parse(tmp_path / "nothing.lance"), reference)


def test_snapshot_survives_pickling(place: Location) -> None:
    snapshot = open_snapshot(place, OnBranch("feat/x"))
    again = pickle.loads(pickle.dumps(snapshot))
    assert (again.version, again.main_location) == (3, place)
    assert count_rows(again) == 9


@pytest.mark.parametrize(
    ("when", "time_us"),
    [
        (datetime(2026, 1, 31, 18, 30, 0, 123456, UTC), 1769884200123456),
        (datetime(2026, 1, 31, 20, 30, tzinfo=timezone(timedelta(hours=2))), 1769884200000000),
        (datetime(1969, 12, 31, 23, 59, 59, 500000, UTC), -500000),
        ("2026-01-31T18:30:00.123456Z", 1769884200123456),
        ("2026-01-31T18:30:00.123456789Z", 1769884200123456),
        (" 2026-01-31 20:30:00+02:00 ", 1769884200000000),
        ("2026-01-31T18:30:00.123Z", 1769884200123999),
        ("2026-01-31T20:30:00.123+02:00", 1769884200123999),
    ],
)
def test_time_is_exact_to_the_microsecond_or_includes_its_millisecond(
    when: datetime | str, time_us: int
) -> None:
    assert time_reference(when) == AsOf(time_us)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01"])
def test_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not a valid time"):
        time_reference(text)


def test_time_without_a_zone_is_local() -> None:
    naive = datetime(2026, 1, 31, 18, 30)
    assert time_reference(naive) == time_reference(naive.astimezone())


def test_the_newest_version_of_an_existing_table_is_opened(place: Location) -> None:
    latest = open_existing(place)
    assert latest is not None
    assert latest.version == open_snapshot(place, Latest()).version


def test_nothing_is_opened_where_there_is_no_table(tmp_path: Path) -> None:
    assert open_existing(Location.parse(tmp_path / "none.lance")) is None


def test_a_branch_that_is_to_be_opened_must_exist(place: Location) -> None:
    with pytest.raises(RefNotFoundError):
        open_existing(place, "nowhere")
