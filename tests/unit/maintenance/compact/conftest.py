"""Table of the compaction tests: sixty rows in six fragments, three rows deleted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot

FRAGMENTS = 6
ROWS = 10


def rows(number: int) -> pa.Table:
    """Return the rows of one fragment."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Return a table of small fragments; two rows of the first and one of the third are gone."""
    uri = tmp_path / "t.lance"
    for number in range(FRAGMENTS):
        mode = "append" if number else "create"
        lance.write_dataset(rows(number), uri, mode=mode, enable_stable_row_ids=request.param)
    dataset = lance.dataset(uri)
    dataset.delete("id IN (3, 4, 25)")
    return dataset


@pytest.fixture
def base(dataset: lance.LanceDataset) -> Snapshot:
    """Return the version that is compacted."""
    return dataset._snapshot
