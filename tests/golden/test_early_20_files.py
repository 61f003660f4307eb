"""Tables of release 0.13, whose data files keep offsets and bytes of strings in two columns."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.compare import assert_same_table
from tests.support.official import Official
from tests.support.readers import LancelakeReader, OfficialReader, face

TABLE = Path(__file__).parent / "tables" / "v0.13.0" / "strings.lance"
VALUES: dict[str, list[object]] = {
    "id": [1, 2, 3, 4],
    "s": ["a", "bb", None, "dddd"],
    "b": [b"x", None, b"zz", b"\xff\x00"],
    "n": [10, 20, 30, 40],
    "t": ["p", "", "r", "s"],
    "l": [["u", "v"], [], ["w"], ["x", "y", "z"]],
    "m": [{"u": "k", "v": 1}, {"u": "l", "v": 2}, {"u": None, "v": 3}, {"u": "n", "v": 4}],
}
each_column = pytest.mark.parametrize("name", list(VALUES))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a copy of the table: one version with four rows, one without row 2."""
    return str(shutil.copytree(TABLE, tmp_path / "t.lance"))


def test_the_indices_of_its_columns_have_gaps(uri: str) -> None:
    (file,) = face.dataset(uri).get_fragments()[0].data_files()
    assert file.column_indices == [0, 1, 3, 5, 6, 8, 9, 11, 12, 14]


def test_all_columns_are_read(uri: str) -> None:
    assert face.dataset(uri, version=1).to_table().to_pydict() == VALUES


@each_column
def test_each_column_is_read_alone(uri: str, name: str) -> None:
    rows = face.dataset(uri, version=1).to_table(columns=[name])
    assert rows.to_pydict() == {name: VALUES[name]}


@each_column
def test_each_column_is_taken_by_position(uri: str, name: str) -> None:
    rows = face.dataset(uri, version=1).take([1, 3], columns=[name])
    assert rows.to_pydict() == {name: [VALUES[name][1], VALUES[name][3]]}


def test_reads_agree_with_official_releases(uri: str, official: Official) -> None:
    judge, subject = OfficialReader(official), LancelakeReader()
    for options in ({}, {"filter": "s = 'dddd' OR t = 'r'"}, {"columns": ["m", "b"]}):
        assert_same_table(subject.read(uri, 2, **options), judge.read(uri, 2, **options))


def test_changes_keep_the_values_of_other_columns(uri: str) -> None:
    dataset = face.dataset(uri)
    dataset.update({"t": "'new'"}, where="id = 3")
    dataset.optimize.compact_files()
    rows = dataset.to_table().sort_by("id").to_pydict()
    expected = {name: [v for i, v in enumerate(c) if i != 1] for name, c in VALUES.items()}
    assert rows == expected | {"t": ["p", "new", "s"]}


def test_bytes_of_a_string_column_include_both_of_its_columns(uri: str) -> None:
    sizes = {f.id: f.bytes_on_disk for f in face.dataset(uri).stats.data_stats().fields}
    assert sizes[1] == 4 * 8 + len("abbdddd")
