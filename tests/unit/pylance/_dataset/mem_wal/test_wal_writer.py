from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, LanceTableError, WriterFencedError
from tests.support.memwal_tables import by_key, rows, with_wal


def test_settings_of_the_table_apply_to_its_writers(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    ds.wal.initialize(unsharded=True, max_memtable_rows=2)
    with ds.wal.writer() as w:
        for key in range(5):
            w.put(rows((key, "x")))
    assert len(list((tmp_path / "t/_mem_wal").glob("*/*_gen_*"))) == 3


def test_a_second_writer_replaces_the_first(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"), buckets=1)
    first = ds.wal.writer()
    first.put(rows((1, "first")))
    with ds.wal.writer() as second:
        second.put(rows((1, "second")))
    with pytest.raises(WriterFencedError):
        first.put(rows((1, "late")))
    assert by_key(ds.wal.to_table()) == {1: "second"}


def test_a_writer_merges_in_the_background(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"), buckets=1)
    with ds.wal.writer(merge_every=timedelta(days=1)) as w:
        w.put(rows((1, "b")))
        w.flush()
        assert w._merger is not None
        w._merger.merge_now()
    assert by_key(lance.dataset(tmp_path / "t").to_table()) == {1: "b"}


def test_errors_of_a_writer_name_the_table(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"))
    writer = ds.wal.writer()
    with pytest.raises(InvalidRequestError, match=r"not values of column id.*t, version 2"):
        writer.delete(["x"])
    with pytest.raises(LanceTableError, match=r"Unknown data type.*t, version 2"):
        writer.put(5)
    writer.close()
