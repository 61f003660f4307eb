"""Fragments show rows and files as in pylance."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance as official
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, OutOfRangeError
from lancelake.pylance import LanceDataset, LanceFragment
from lancelake.pylance.file import LanceFileReader
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table whose fragments have 7, 8, 7, 4 and 1 live rows."""
    return varied(tmp_path_factory.mktemp("fragment") / "t.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the table, open."""
    return lance.dataset(table.uri)


@pytest.fixture(scope="module")
def theirs(table: Varied) -> Any:
    """Return the table, opened by pylance."""
    return official.dataset(table.uri)


@pytest.mark.parametrize("name", ["fragment_id", "physical_rows", "num_deletions", "schema"])
def test_attribute_is_that_of_pylance(ds: LanceDataset, theirs: Any, name: str) -> None:
    found = [getattr(fragment, name) for fragment in ds.get_fragments()]
    assert found == [getattr(fragment, name) for fragment in theirs.get_fragments()]


def test_text_is_that_of_pylance(ds: LanceDataset, theirs: Any) -> None:
    assert list(map(repr, ds.get_fragments())) == list(map(repr, theirs.get_fragments()))


def test_deletion_files_are_those_of_pylance(ds: LanceDataset, theirs: Any) -> None:
    found = [fragment.deletion_file() for fragment in ds.get_fragments()]
    assert found == [fragment.deletion_file() for fragment in theirs.get_fragments()]
    assert found[4] is None


def test_data_files_are_those_of_pylance(ds: LanceDataset, theirs: Any) -> None:
    def shown(fragment: Any) -> list[tuple[str, list[int]]]:
        return [(file.path, list(file.fields)) for file in fragment.data_files()]

    assert list(map(shown, ds.get_fragments())) == list(map(shown, theirs.get_fragments()))


@pytest.mark.parametrize("filter", [None, "key % 2 = 0", "n IS NULL"])
def test_rows_are_counted(ds: LanceDataset, theirs: Any, filter: str | None) -> None:
    found = [fragment.count_rows(filter) for fragment in ds.get_fragments()]
    assert found == [fragment.count_rows(filter) for fragment in theirs.get_fragments()]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["key", "st"], "filter": "key % 2 = 0"},
        {"columns": {"twice": "key * 2"}},
        {"limit": 2, "offset": 1},
        {"with_row_id": True, "with_row_address": True},
    ],
)
@pytest.mark.parametrize("number", range(5))
def test_rows_are_those_of_pylance(
    ds: LanceDataset, theirs: Any, options: dict[str, Any], number: int
) -> None:
    found = ds.get_fragment(number).to_table(**options)
    assert_same_table(found, theirs.get_fragment(number).to_table(**options))


def test_rows_come_in_batches(ds: LanceDataset) -> None:
    sizes = [batch.num_rows for batch in ds.get_fragment(1).to_batches(batch_size=3)]
    assert sum(sizes) == 8
    assert max(sizes) <= 3


def test_first_rows(ds: LanceDataset, table: Varied) -> None:
    assert_same_table(ds.get_fragment(1).head(3), table.rows.slice(7, 3))
    assert ds.get_fragment(1).head(100).num_rows == 8


def test_rows_as_pandas(ds: LanceDataset) -> None:
    assert ds.get_fragment(0).to_pandas(columns=["key"])["key"].tolist() == [0, 2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize(
    "indices", [[0, 6], [], pa.array([1, 2]), np.array([3]), range(2), [6, 0, 6]], ids=str
)
def test_rows_are_taken_by_number(ds: LanceDataset, table: Varied, indices: Any) -> None:
    found = ds.get_fragment(2).take(indices)
    asked = [int(i) for i in (indices.to_pylist() if isinstance(indices, pa.Array) else indices)]
    assert_same_table(found, table.rows.slice(15, 7).take(pa.array(asked, pa.int64())))


def test_number_beyond_the_fragment_is_refused(ds: LanceDataset) -> None:
    with pytest.raises(OutOfRangeError, match="fragment 0"):
        ds.get_fragment(0).take([7])


def test_session_takes_again_and_again(ds: LanceDataset) -> None:
    session = ds.get_fragment(0).open_session(columns=["key"], with_row_address=True)
    assert session.take([1]).to_pydict() == {"key": [2], "_rowaddr": [2]}
    assert session.take([0, 3]).to_pydict() == {"key": [0, 4], "_rowaddr": [0, 4]}


def test_stored_columns_are_those_of_the_files(ds: LanceDataset) -> None:
    assert ds.get_fragment(0).physical_schema.names == ["key", "a", "text", "st", "f", "n"]
    assert ds.get_fragment(3).physical_schema.names == ["key", "st", "f"]


def test_fragment_survives_pickling(ds: LanceDataset) -> None:
    fragment = ds.get_fragment(3)
    again = pickle.loads(pickle.dumps(fragment))
    assert again.fragment_id == 3
    assert_same_table(again.to_table(), fragment.to_table())


def test_fragment_that_is_not_there_is_refused(ds: LanceDataset) -> None:
    assert ds.get_fragment(99) is None
    with pytest.raises(InvalidRequestError, match="fragment 99"):
        LanceFragment(ds, 99)


def test_partitions_are_not_offered(ds: LanceDataset) -> None:
    with pytest.raises(NotImplementedError):
        _ = ds.get_fragment(0).partition_expression


@pytest.mark.parametrize("rows", [pd.DataFrame([]), pd.DataFrame([{}])])
def test_a_fragment_without_rows_or_columns_is_an_os_error(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(OSError):  # the class is what pylance's programs catch
        LanceFragment.create(tmp_path / "t", rows)


def test_columns_of_row_ids_cannot_be_updated(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    rows = pa.table({"_rowid": pa.array([0], pa.uint64()), "_rowaddr": pa.array([5], pa.uint64())})
    with pytest.raises(ValueError, match="_rowaddr is a metadata column and cannot be updated"):
        made.get_fragment(0).update_columns(rows)


def _num_pages(folder: Path, **options: Any) -> int:
    schema = pa.schema([("a", pa.int64())])
    batches = [pa.record_batch([pa.array([i, i + 1])], schema=schema) for i in range(2)]
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    made = lance.write_dataset(reader, folder, data_storage_version="2.0", **options)
    (file,) = made.get_fragments()[0].data_files()
    opened = LanceFileReader(str(folder / "data" / file.path))
    return len(opened.metadata().columns[0].pages)


def test_sizes_of_pages_are_chosen(tmp_path: Path) -> None:
    assert _num_pages(tmp_path / "default") == 1
    assert _num_pages(tmp_path / "split", max_page_bytes=1) == 4
    assert _num_pages(tmp_path / "uncached", data_cache_bytes=1) == 2
    with pytest.raises(OSError, match="max_page_bytes must be greater than 0, got 0"):
        _num_pages(tmp_path / "none", max_page_bytes=0)
