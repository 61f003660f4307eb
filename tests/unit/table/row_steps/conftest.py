"""Table of these tests, the same as for row changes."""

from tests.unit.table.rows.conftest import base, dataset

__all__ = ["base", "dataset"]
