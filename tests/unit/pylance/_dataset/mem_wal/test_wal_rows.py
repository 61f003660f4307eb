from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from tests.support.memwal_tables import with_wal


def test_keys_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"))
    with pytest.raises(InvalidRequestError, match="not values of column id"):
        ds.wal.get(["x"])
    with pytest.raises(InvalidRequestError, match="no column id"):
        ds.wal.get(pa.table({"name": ["a"]}))


def test_a_key_of_two_columns_takes_rows_only(tmp_path: Path) -> None:
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.utf8(), nullable=False)]
    ds = lance.write_dataset(pa.table([[1], ["x"]], schema=pa.schema(fields)), tmp_path / "t")
    ds.wal.initialize(key=["a", "b"], buckets=2)
    assert ds.wal.get({"b": ["x"], "a": [1]}).num_rows == 1
    with pytest.raises(InvalidRequestError, match="the key has the columns a, b"):
        ds.wal.get([1])
