"""Consistency checks of a table after its application, or a part of it, died."""

from __future__ import annotations

from pathlib import Path

import lancelake.pylance as lance
from lancelake.errors import TableNotFoundError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.spark_faults.works import Work, table_of
from tests.support.official import Official

LOW_COVERAGE = "index-coverage-low"


def version_of(place: Path) -> int:
    """Return the newest version, 0 when there is no table."""
    try:
        return lance.dataset(str(table_of(place))).version
    except TableNotFoundError:
        return 0


def ensure_done_once(work: Work, place: Path, official: Official) -> None:
    """Every row is there once, every commit was made once, and every judge is content."""
    table = table_of(place)
    found = lance.dataset(str(table)).to_table()
    rows = sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert rows == sorted(work.after.items())
    assert version_of(place) == work.begins_at + work.commits
    ensure_sound(table)
    judged = official.read(table)
    theirs = zip(judged["id"].to_pylist(), judged["n"].to_pylist(), strict=True)
    assert sorted(theirs) == rows


def ensure_sound(table: Path) -> None:
    """Nothing is wrong with any version."""
    found = list(check(Location.parse(str(table)), data=True, versions="all"))
    # An index is behind the rows in the versions between a change and its refresh.
    wrong = [f for f in found if f.severity is not Severity.INFO and f.code != LOW_COVERAGE]
    assert wrong == []


def files_of_no_version(table: Path) -> set[str]:
    """Return the names of data files that no version refers to."""
    known = {
        Path(file.path).name
        for version in lance.dataset(str(table)).versions()
        for fragment in lance.dataset(str(table), version=version["version"]).get_fragments()
        for file in fragment.metadata.files
    }
    return {path.name for path in table.joinpath("data").iterdir()} - known
