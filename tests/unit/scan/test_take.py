"""Rows by position, in the requested order."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import OutOfRangeError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import take, take_from_fragment
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, open_source, varied

NUMBERS = st.lists(st.integers(0, 26), max_size=40)


def numbers(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Varied, Snapshot]:
    """Return a table with the rows it holds."""
    table = varied(tmp_path_factory.mktemp("take") / "t.lance")
    return table, open_source(table.uri)


@given(asked=NUMBERS)
def test_rows_come_as_asked_for(both: tuple[Varied, Snapshot], asked: list[int]) -> None:
    table, source = both
    found = take(source, numbers(asked), ScanRequest())
    assert_same_table(found, table.rows.take(pa.array(asked, pa.int64())))


@given(asked=NUMBERS, fragment=st.integers(0, 4))
def test_rows_of_a_fragment_are_numbered_from_its_first(
    both: tuple[Varied, Snapshot], asked: list[int], fragment: int
) -> None:
    table, source = both
    first, count = [(0, 7), (7, 8), (15, 7), (22, 4), (26, 1)][fragment]
    within = [number % count for number in asked]
    request = ScanRequest(fragment_ids=(FragmentId(fragment),))
    chosen = source.manifest.fragments[fragment]
    found = take_from_fragment(source, chosen, numbers(within), request)
    assert_same_table(found, table.rows.slice(first, count).take(pa.array(within, pa.int64())))


@pytest.mark.parametrize("asked", [[27], [0, 27], [5, 1000], [2**63]])
def test_number_beyond_the_last_row_is_refused(source: Snapshot, asked: list[int]) -> None:
    with pytest.raises(OutOfRangeError, match=f"row {max(asked)} .*27 rows"):
        take(source, numbers(asked), ScanRequest())


def test_number_beyond_the_last_row_of_a_fragment_is_refused(source: Snapshot) -> None:
    request = ScanRequest(fragment_ids=(FragmentId(0),))
    with pytest.raises(OutOfRangeError, match=r"row 7 .*fragment 0 has 7"):
        take_from_fragment(source, source.manifest.fragments[0], numbers([7]), request)


def test_columns_are_those_asked_for(source: Snapshot) -> None:
    request = ScanRequest(columns=("st.x", "_rowid", "key"))
    found = take(source, numbers([26, 0]), request)
    assert found.to_pylist() == [
        {"st": {"x": 36}, "_rowid": 4 << 32, "key": 36},
        {"st": {"x": None}, "_rowid": 0, "key": 0},
    ]


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (["_rowid", "_rowid"], ["_rowid", "_rowid"]),
        (["key", "_rowid", "key", "_rowid"], ["key", "_rowid", "_rowid"]),
        (["st.x", "_rowaddr", "st", "_rowaddr"], ["st", "_rowaddr", "_rowaddr"]),
    ],
)
def test_metadata_columns_come_as_often_as_asked_for_and_stored_ones_once(
    source: Snapshot, asked: list[str], got: list[str]
) -> None:
    found = take(source, numbers([26, 0, 26]), ScanRequest(columns=tuple(asked)))
    assert found.schema.names == got
    assert found[got.index(got[-1])].equals(found[len(got) - 1])


def test_address_asked_for_beside_a_repeated_column_stays(source: Snapshot) -> None:
    request = ScanRequest(
        columns=("key", "key"), with_row_address=True, fragment_ids=(FragmentId(0),)
    )
    found = take_from_fragment(source, source.manifest.fragments[0], numbers([1]), request)
    assert found.schema.names == ["key", "_rowaddr"]


def test_columns_can_be_computed(source: Snapshot) -> None:
    request = ScanRequest(columns=FrozenMap({"twice": "key * 2", "id": "_rowid"}))
    assert take(source, numbers([1, 1]), request).to_pydict() == {"twice": [4, 4], "id": [2, 2]}


def test_numbers_of_rows_are_those_asked_for(source: Snapshot) -> None:
    asked = [26, 3, 3, 12]
    found = take(source, numbers(asked), ScanRequest(columns=("_rowoffset",)))
    assert found["_rowoffset"].to_pylist() == asked


def test_no_numbers_give_no_rows_of_the_schema(source: Snapshot, table: Varied) -> None:
    found = take(source, numbers([]), ScanRequest())
    assert (found.num_rows, found.schema.names) == (0, table.rows.schema.names)


def test_dictionaries_of_several_fragments_are_joined(tmp_path: Path) -> None:
    words = pa.array(["x", None, "y", "z", "x", None]).dictionary_encode()
    lance.write_dataset(pa.table({"d": words}), tmp_path / "t", max_rows_per_file=2)
    found = take(open_source(tmp_path / "t"), numbers([5, 3, 0, 2]), ScanRequest())
    assert found["d"].to_pylist() == [None, "z", "x", "y"]


def test_rows_of_a_fragment_without_a_row_left_are_not_counted(tmp_path: Path) -> None:
    written = lance.write_dataset(pa.table({"k": range(9)}), tmp_path / "t", max_rows_per_file=3)
    written.delete("k BETWEEN 3 AND 5")
    found = take(open_source(tmp_path / "t"), numbers([2, 3]), ScanRequest())
    assert found["k"].to_pylist() == [2, 6]
