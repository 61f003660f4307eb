"""`confine_to` restricts a table to the allowed locations."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import PlaceNotAllowedError

ROWS = pa.table({"a": [1, 2]})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, str(tmp_path / "source.lance"))
    return tmp_path / "source.lance"


@pytest.fixture
def clone(source: Path, tmp_path: Path) -> Path:
    """A table whose files all belong to another."""
    lance.dataset(str(source)).shallow_clone(str(tmp_path / "clone.lance"), 1)
    return tmp_path / "clone.lance"


def test_table_on_disk_reaches_its_base_elsewhere(clone: Path) -> None:
    assert lance.dataset(str(clone)).to_table() == ROWS


def test_confined_table_reaches_the_roots_that_are_given(clone: Path, source: Path) -> None:
    assert lance.dataset(str(clone), confine_to=[source]).to_table() == ROWS
    assert lance.dataset(str(clone), confine_to=[source.parent]).to_table() == ROWS


def test_confined_table_reaches_nothing_else(clone: Path) -> None:
    with pytest.raises(PlaceNotAllowedError, match="confine_to"):
        lance.dataset(str(clone), confine_to=[]).to_table()


def test_confinement_outlives_what_is_done_with_a_dataset(clone: Path) -> None:
    confined = lance.dataset(str(clone), confine_to=[])
    branch = confined.create_branch("b")
    for found in (
        pickle.loads(pickle.dumps(confined)),
        confined.checkout_version(1),
        lance.dataset(str(clone), asof="2100-01-01", confine_to=[]),
        branch,
        branch.checkout_version(("main", None)),
        confined.get_fragments()[0],
    ):
        with pytest.raises(PlaceNotAllowedError):
            found.to_table()


def test_confined_write_does_not_read_elsewhere(clone: Path) -> None:
    confined = lance.dataset(str(clone), confine_to=[])
    for change in (
        lambda: confined.delete("a = 1"),
        lambda: confined.update({"a": "3"}),
        lambda: confined.deep_clone(str(clone.parent / "deep"), 1),
        confined.validate,
    ):
        with pytest.raises(OSError, match="confine_to"):
            change()


def test_confined_table_is_appended_to_and_cleaned_up(clone: Path, source: Path) -> None:
    made = lance.write_dataset(ROWS, str(clone), mode="append", confine_to=[])
    made.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert lance.dataset(str(clone)).count_rows() == 4


@pytest.mark.parametrize("folder", ["data", "_versions", "_transactions"])
def test_confined_table_does_not_leave_through_a_link(
    source: Path, tmp_path: Path, folder: str
) -> None:
    (source / folder).rename(tmp_path / "outside")
    (source / folder).symlink_to(tmp_path / "outside")
    before = sorted(path.name for path in (tmp_path / "outside").iterdir())
    assert lance.dataset(str(source)).to_table() == ROWS
    with pytest.raises(PlaceNotAllowedError):
        lance.dataset(str(source), confine_to=[]).insert(ROWS)
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == before
