"""A table of release 0.13 whose file has all rows of a sliced struct's members."""

from __future__ import annotations

from pathlib import Path

from tests.support.compare import assert_same_table
from tests.support.official import Official
from tests.support.readers import LancelakeReader, OfficialReader, face

TABLE = str(Path(__file__).parent / "tables" / "v0.13.0" / "sliced_structs.lance")


def test_the_first_rows_are_read() -> None:
    assert face.dataset(TABLE).to_table().to_pylist() == [
        {"id": i, "p": {"x": i * 10, "y": f"y{i}"}} for i in range(4)
    ]


def test_rows_are_taken_by_position() -> None:
    assert face.dataset(TABLE).take([3])["p"].to_pylist() == [{"x": 30, "y": "y3"}]


def test_reads_agree_with_official_releases(official: Official) -> None:
    judge, subject = OfficialReader(official), LancelakeReader()
    assert_same_table(subject.read(TABLE, 1), judge.read(TABLE, 1))
