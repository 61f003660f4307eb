from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.memwal.status import read_entries
from tests.support.memwal_tables import REGION, keys, new_table, rows, writer


def test_entries_that_are_not_flushed_are_read(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((1, "flushed")))
    mine.flush()
    writer(base).delete(keys(1))
    found = list(read_entries(base, REGION))
    assert [(e.position, e.writer_epoch, e.is_sentinel) for e in found] == [
        (2, 2, True),
        (3, 2, False),
    ]
    assert found[1].rows.to_pylist() == [{"id": 1, "name": None, "_tombstone": True}]
    assert [e.position for e in read_entries(base, REGION, after=0)] == [1, 2, 3]


def test_an_unknown_region(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with pytest.raises(InvalidRequestError, match="has no region"):
        list(read_entries(base, uuid.UUID(int=1)))
