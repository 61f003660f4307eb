"""Joined rows have the numbers, deletions and metadata of their fragments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.data.codec import official, readers
from lancelake.data.fragment_reader import MetaColumn
from lancelake.scan.plan import ScanSpec
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.task_rows import join_rows
from lancelake.storage.location import default_session


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return fragments of ten, ten and five rows, with deleted rows in the second."""
    found = lance.write_dataset(
        pa.table({"k": range(25)}), tmp_path / "t.lance", max_rows_per_file=10
    )
    found.delete("k IN (11, 19)")
    return found


def spec(dataset: lance.LanceDataset) -> ScanSpec:
    return plan(dataset._snapshot, ScanRequest()).spec


def test_deleted_rows_are_shifted(dataset: lance.LanceDataset) -> None:
    with join_rows(spec(dataset), list(dataset._snapshot.manifest.fragments)) as source:
        assert source is not None
        assert source.deleted == BitMap([11, 19])


def test_rows_are_split_into_offsets_of_each_fragment(dataset: lance.LanceDataset) -> None:
    with join_rows(spec(dataset), list(dataset._snapshot.manifest.fragments)) as source:
        assert source is not None
        found = source.split(BitMap([0, 9, 20, 24]))
        assert found == [BitMap([0, 9]), BitMap(), BitMap([0, 4])]


def test_addresses_are_those_of_the_fragments(dataset: lance.LanceDataset) -> None:
    with join_rows(spec(dataset), list(dataset._snapshot.manifest.fragments)) as source:
        assert source is not None
        offsets = np.array([9, 10, 24], dtype=np.uint64)
        found = source.meta(MetaColumn.ROW_ADDRESS, offsets, offsets).to_pylist()
        assert found == [9, 1 << 32, (2 << 32) + 4]


def test_the_local_file_is_removed_and_closed(dataset: lance.LanceDataset) -> None:
    with join_rows(spec(dataset), list(dataset._snapshot.manifest.fragments)) as source:
        assert source is not None
        place = source.files.data_file(source.fragment.files[0])
        assert (
            len(
                list(
                    source.reader(spec(dataset).table_schema).batches(
                        start=0, stop=25, batch_rows=25
                    )
                )
            )
            == 1
        )
    assert not Path(place.root.uri).exists()
    assert Path(place.root.uri).parent == official.folder()
    assert not any(at == place for at, _ in default_session().caches[readers.READERS]._items)
