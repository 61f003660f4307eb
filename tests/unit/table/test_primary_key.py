from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.format.primary_key import key_names
from lancelake.table.config import declare_primary_key


def _table(path: Path) -> lance.LanceDataset:
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)]
    schema = pa.schema([*fields, pa.field("c", pa.int64())])
    return lance.write_dataset(pa.table([[1], [2], [3]], schema=schema), path)


def test_a_key_is_declared_in_the_given_order(tmp_path: Path) -> None:
    made = declare_primary_key(_table(tmp_path / "t")._snapshot, ["b", "a"])
    assert key_names(made.manifest.schema) == ("b", "a")


def test_a_second_key_and_a_nullable_column_are_refused(tmp_path: Path) -> None:
    base = _table(tmp_path / "t")._snapshot
    with pytest.raises(InvalidRequestError, match="column c cannot be part of the primary key"):
        declare_primary_key(base, ["c"])
    made = declare_primary_key(base, ["a"])
    with pytest.raises(InvalidRequestError, match="already has the primary key a"):
        declare_primary_key(made, ["b"])
