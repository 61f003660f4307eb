"""Limits of a memtable must fit a row."""

from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.memwal.writer import WriterOptions


@pytest.mark.parametrize(
    "name", ["max_memtable_rows", "max_memtable_batches", "max_memtable_bytes"]
)
def test_limits_that_no_row_fits_are_refused(name: str) -> None:
    assert getattr(WriterOptions(**{name: 1}), name) == 1
    with pytest.raises(InvalidRequestError, match=f"{name} must be at least 1"):
        WriterOptions(**{name: 0})
