"""Small fragments are gathered in one local file, unless a file is not as described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.joined_fragments import is_small, join
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles

ROWS = 30


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return three fragments of ten rows."""
    rows = pa.table({"k": range(ROWS), "s": [None if i % 4 == 0 else f"s{i}" for i in range(ROWS)]})
    return lance.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty table folder."""
    path = tmp_path / "joined"
    (path / layout.DATA).mkdir(parents=True)
    return path


def fragments(dataset: lance.LanceDataset) -> Sequence[Fragment]:
    return list(dataset._snapshot.manifest.fragments)


def test_the_joined_fragment_has_the_rows_of_all_in_order(
    dataset: lance.LanceDataset, folder: Path
) -> None:
    base = dataset._snapshot
    whole = join(base.files, fragments(dataset), folder)
    assert whole is not None
    assert whole.physical_rows == ROWS
    files = TableFiles(root=Location.parse(folder))
    reader = FragmentReader(files, base.manifest_at, whole, base.manifest.schema)
    (batch,) = reader.batches(start=0, stop=ROWS, batch_rows=ROWS)
    assert pa.Table.from_batches([batch]).to_pylist() == dataset.to_table().to_pylist()


def test_a_file_with_other_rows_than_described_is_not_joined(
    dataset: lance.LanceDataset, folder: Path
) -> None:
    first, *others = fragments(dataset)
    wrong = replace(first, physical_rows=9)
    assert join(dataset._snapshot.files, [wrong, *others], folder) is None


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_size_than_described_is_not_joined(
    dataset: lance.LanceDataset, folder: Path, change: int
) -> None:
    first, *others = fragments(dataset)
    (file,) = first.files
    size_bytes = (file.file_size_bytes or 0) + change
    wrong = replace(first, files=(replace(file, file_size_bytes=size_bytes),))
    assert join(dataset._snapshot.files, [wrong, *others], folder) is None


def test_a_missing_file_is_not_joined(dataset: lance.LanceDataset, folder: Path) -> None:
    first, *others = fragments(dataset)
    (file,) = first.files
    wrong = replace(first, files=(replace(file, path="none.lance"),))
    assert join(dataset._snapshot.files, [wrong, *others], folder) is None


def test_a_file_of_unknown_size_is_not_small(dataset: lance.LanceDataset) -> None:
    first = fragments(dataset)[0]
    (file,) = first.files
    assert is_small(first)
    assert not is_small(replace(first, files=(replace(file, file_size_bytes=None),)))
