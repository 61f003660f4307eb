"""`--at` resolves to the right version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lancelake.cli.tables import open_at
from lancelake.commit.snapshot import AtVersion, open_snapshot
from lancelake.core.table_place import TablePlace
from lancelake.errors import InvalidRequestError, RefNotFoundError
from lancelake.storage.location import Location
from tests.support.official import Official


@pytest.mark.parametrize(
    ("when", "branch", "version"),
    [
        (None, None, 5),
        ("latest", None, 5),
        ("3", None, 3),
        ("first", None, 1),
        ("side", "side", 6),
        ("side:", "side", 6),
        ("side:latest", "side", 6),
        ("side:5", "side", 5),
        ("main:2", None, 2),
        ("2999-01-01", None, 5),
        ("2999-01-01T00:00:00Z", None, 5),
        ("side:2999-01-01", "side", 6),
    ],
)
def test_finds(when: str | None, branch: str | None, version: int, sound: Path) -> None:
    snapshot = open_at(TablePlace(Location.parse(sound)), when).snapshot
    assert (snapshot.branch, snapshot.version) == (branch, version)


def test_finds_the_version_of_a_time_to_the_microsecond(sound: Path) -> None:
    location = Location.parse(sound)
    written = open_snapshot(location, AtVersion(3)).manifest.timestamp
    assert written is not None
    before = (written - timedelta(microseconds=1)).isoformat()
    assert open_at(TablePlace(location), written.isoformat()).snapshot.version == 3
    assert open_at(TablePlace(location), before).snapshot.version == 2


def test_a_time_in_another_zone_is_the_same_moment(sound: Path) -> None:
    location = Location.parse(sound)
    written = open_snapshot(location, AtVersion(3)).manifest.timestamp
    assert written is not None
    shown = (written + timedelta(hours=2, microseconds=1)).replace(tzinfo=None).isoformat()
    assert open_at(TablePlace(location), f"{shown}+02:00").snapshot.version == 3


def test_a_tag_called_like_a_date_is_a_tag(official_14: Official, table: Path) -> None:
    official_14.tag(table, "2026-01-31", 2)
    assert open_at(TablePlace(Location.parse(table)), "2026-01-31").snapshot.version == 2


def test_tags_and_branches_are_found_from_the_uri_of_a_branch(sound: Path) -> None:
    location = Location.parse(sound / "tree" / "side")
    assert open_at(TablePlace(location), "first").snapshot.version == 1
    assert open_at(TablePlace(location), "main:2").snapshot.version == 2
    assert open_at(TablePlace(location), None).snapshot.branch == "side"


def test_a_close_name_is_suggested(sound: Path) -> None:
    with pytest.raises(RefNotFoundError, match="Did you mean first"):
        open_at(TablePlace(Location.parse(sound)), "firts")


def test_an_unknown_name_is_reported(sound: Path) -> None:
    with pytest.raises(RefNotFoundError, match="tag or branch 'nothing' does not exist"):
        open_at(TablePlace(Location.parse(sound)), "nothing")


@pytest.mark.parametrize("when", ["2026-13-45T00:00", "side:tomorrow"])
def test_what_is_no_time_is_reported(when: str, sound: Path) -> None:
    with pytest.raises(InvalidRequestError):
        open_at(TablePlace(Location.parse(sound)), when)


def test_a_time_without_a_zone_is_local(sound: Path) -> None:
    location = Location.parse(sound)
    later = datetime.now(UTC).astimezone().replace(tzinfo=None) + timedelta(hours=1)
    assert open_at(TablePlace(location), later.isoformat()).snapshot.version == 5
