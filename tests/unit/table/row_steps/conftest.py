"""Which tables do these tests change? The same as those of changes of rows."""

from tests.unit.table.rows.conftest import base, dataset

__all__ = ["base", "dataset"]
