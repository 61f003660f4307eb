"""Tables of the scan tests: two with the same rows and history, one with stable row ids."""

from __future__ import annotations

import pytest

from lancelake.commit.snapshot import Snapshot
from tests.support.read_tables import Varied, open_source, varied


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table whose row ids are addresses."""
    return varied(tmp_path_factory.mktemp("scan") / "table.lance")


@pytest.fixture(scope="session")
def stable(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table with stable row ids."""
    return varied(tmp_path_factory.mktemp("scan") / "stable.lance", stable_row_ids=True)


@pytest.fixture(scope="session")
def source(table: Varied) -> Snapshot:
    """Return the latest version of the first table."""
    return open_source(table.uri)


@pytest.fixture(scope="session")
def stable_source(stable: Varied) -> Snapshot:
    """Return the latest version of the second table."""
    return open_source(stable.uri)
