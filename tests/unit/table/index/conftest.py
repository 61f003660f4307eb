"""Tables to be indexed."""

from __future__ import annotations

import pytest

import lancelake.pylance as lance
from tests.support.scalar_index_tables import rows


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, tmp_table: str) -> lance.LanceDataset:
    """Return a table of three fragments with deleted rows."""
    lance.write_dataset(
        rows(300), tmp_table, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    found = lance.dataset(tmp_table)
    found.delete("n % 7 = 3")
    return found
