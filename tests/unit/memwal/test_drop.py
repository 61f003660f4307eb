from __future__ import annotations

from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.memwal.setup import bucketed, drop_mem_wal, initialize
from lancelake.memwal.view import Freshness
from tests.support.memwal_tables import (
    end_without_retirement,
    new_table,
    newest,
    rows,
    seen,
    writer,
)

BASE = {1: "base", 2: "base"}


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a generation and a tail."""
    new_table(tmp_path / "t", *BASE.items())
    mine = writer(newest(tmp_path / "t"))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    return tmp_path / "t"


def ensure_a_new_one_starts_empty(uri: Path) -> None:
    base = newest(uri)
    initialize(base, bucketed(base, "id", 1))
    assert [seen(newest(uri), freshness) for freshness in Freshness] == [BASE] * 3


def test_a_dropped_mem_wal_must_be_merged_or_discarded(uri: Path) -> None:
    with pytest.raises(InvalidRequestError, match="not merged"):
        drop_mem_wal(newest(uri))
    drop_mem_wal(newest(uri), discard=True)
    assert dict(zip(*lance.dataset(uri).to_table().to_pydict().values(), strict=True)) == BASE
    ensure_a_new_one_starts_empty(uri)


def test_rows_that_another_program_left_must_be_discarded(uri: Path) -> None:
    end_without_retirement(uri)
    with pytest.raises(InvalidRequestError, match="of an earlier MemWAL"):
        drop_mem_wal(newest(uri))
    drop_mem_wal(newest(uri), discard=True)
    ensure_a_new_one_starts_empty(uri)
