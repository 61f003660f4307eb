"""Members of pylance's inner dataset object."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance


@pytest.fixture
def ds(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table({"a": range(20), "b": range(20)})
    made = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=6)
    made.delete("a = 3")
    return made


def test_ranges_of_positions_are_batches(ds: lance.LanceDataset) -> None:
    reader = ds._ds.take_scan(iter([(0, 8), (10, 12), (5, 5)]), columns=["a"])
    assert reader.schema == pa.schema([("a", pa.int64())])
    found = [batch["a"].to_pylist() for batch in reader]
    assert found == [[0, 1, 2, 4, 5, 6, 7, 8], [11, 12], []]


def test_positions_beyond_the_end_are_an_error(ds: lance.LanceDataset) -> None:
    with pytest.raises(IndexError):
        ds._ds.take_scan([(15, 40)]).read_all()


def test_versions_are_methods(ds: lance.LanceDataset) -> None:
    assert (ds._ds.version(), ds._ds.latest_version()) == (2, 2)


def test_other_members_are_those_of_the_dataset(ds: lance.LanceDataset) -> None:
    assert ds._ds.base_paths() == {}
    assert ds._ds.lance_schema.field_case_insensitive("B").id() == 1
    with pytest.raises(AttributeError):
        ds._ds._nothing  # noqa: B018
