"""Table of the merge tests: ten rows in three fragments, one row deleted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot

ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "name": [f"n{i}" for i in range(10)],
        "weight": [i * 1.5 for i in range(10)],
    }
)


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Return a table without row 2."""
    lance.write_dataset(
        ROWS, tmp_path / "t", max_rows_per_file=4, enable_stable_row_ids=request.param
    )
    dataset = lance.dataset(tmp_path / "t")
    dataset.delete("id = 2")
    return dataset._snapshot
