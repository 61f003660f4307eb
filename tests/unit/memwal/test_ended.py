from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, InvalidRequestError, WriterFencedError
from lancelake.memwal.region import ensure_ended, ensure_not_ended, ensure_writable, was_replaced
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.shape import RowShape
from tests.support.memwal_tables import SCHEMA, end_without_retirement, new_table, newest, rows


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a MemWAL."""
    new_table(tmp_path / "t", (1, "base"))
    return tmp_path / "t"


def test_the_newest_version_decides(uri: Path) -> None:
    with_mem_wal = newest(uri)
    with pytest.raises(AlreadyExistsError, match="already has a MemWAL"):
        ensure_ended(with_mem_wal)
    ensure_not_ended(with_mem_wal)
    end_without_retirement(uri)
    ensure_ended(with_mem_wal)
    with pytest.raises(WriterFencedError, match="has no MemWAL"):
        ensure_not_ended(with_mem_wal)
    with pytest.raises(InvalidRequestError, match="has no MemWAL"):
        ensure_writable(with_mem_wal, RowShape.of(with_mem_wal))


def test_rows_of_an_overwritten_table_are_not_written_to_the_next_one(uri: Path) -> None:
    before = newest(uri)
    other = pa.schema([SCHEMA.field("id"), pa.field("other", pa.utf8())])
    lance.write_dataset(pa.table([[1], ["x"]], schema=other), uri, mode="overwrite")
    initialize(newest(uri), bucketed(newest(uri), "id", 1))
    with pytest.raises(InvalidRequestError, match="column name has changed"):
        ensure_writable(before, RowShape.of(before))


def test_rows_of_another_key_are_not_written(uri: Path) -> None:
    before = newest(uri)
    key = SCHEMA.field("id").metadata
    other = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.utf8(), False, key)])
    lance.write_dataset(pa.table([[1], ["x"]], schema=other), uri, mode="overwrite")
    initialize(newest(uri), bucketed(newest(uri), "name", 1))
    with pytest.raises(InvalidRequestError, match="the primary key has changed"):
        ensure_writable(before, RowShape.of(before))


def test_an_added_column_does_not_stop_a_writer(uri: Path) -> None:
    before = newest(uri)
    lance.dataset(uri).add_columns(pa.field("more", pa.int64()))
    ensure_writable(before, RowShape.of(before))


def test_an_overwrite_is_found_behind_later_changes(uri: Path) -> None:
    assert not was_replaced(newest(uri))
    lance.write_dataset(rows((1, "x")), uri, mode="overwrite")
    lance.write_dataset(rows((2, "x")), uri, mode="append")
    assert was_replaced(newest(uri))


def test_a_removed_entry_does_not_replace_the_table(uri: Path) -> None:
    end_without_retirement(uri)
    assert not was_replaced(newest(uri))


def test_a_restore_replaces_the_table_of_another_key(tmp_path: Path) -> None:
    keyless = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.utf8())])
    lance.write_dataset(pa.table([[1], ["x"]], schema=keyless), tmp_path)
    lance.write_dataset(rows((1, "x")), tmp_path, mode="overwrite")
    initialize(newest(tmp_path), bucketed(newest(tmp_path), "id", 1))
    lance.dataset(tmp_path, version=1).restore()
    assert was_replaced(newest(tmp_path))
