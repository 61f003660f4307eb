"""An account counts the I/O of its own operation, in threads too."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.storage.instrumented import BufferRead, ColumnRead, IoAccount, current_account
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.threads import Pool


@pytest.fixture
def root(tmp_path: Path) -> Location:
    place = Location.parse(str(tmp_path))
    place.store.put("a", b"12345")
    return place


def test_calls_of_stores_are_counted_while_the_account_is_active(root: Location) -> None:
    account = IoAccount()
    with account.active():
        root.store.get("a")
        root.store.get_range("a", start=1, length=2)
    root.store.get("a")
    assert (account.store_requests, account.store_bytes_read) == (2, 7)


def test_threads_of_a_pool_share_the_account(root: Location) -> None:
    def read(path: str) -> bytes:
        return root.store.get(path)

    account = IoAccount()
    with Pool(2) as pool:
        with account.active():
            found = list(pool.map(read, ["a", "a", "a"]))
        pool.submit(lambda: root.store.get("a")).result()
    assert len(found) == account.store_requests == 3


def test_an_inner_account_counts_alone(root: Location) -> None:
    outer, inner = IoAccount(), IoAccount()
    with outer.active():
        with inner.active():
            root.store.get("a")
        assert current_account() is outer
    assert (outer.requests, inner.requests) == (0, 1)


def test_reads_of_the_codec_are_requests(root: Location) -> None:
    account = IoAccount()
    place = FileAt(root=root, path="a")
    account.add(ColumnRead(place=place, columns=None, rows=range(3, 7)))
    account.add(ColumnRead(place=place, columns=("x",), rows=[1, 5]))
    account.add(BufferRead(place=place, size_bytes=3))
    assert (account.requests, account.rows_read) == (3, 6)


def test_events_are_counted_by_name() -> None:
    account = IoAccount()
    account.count("hits")
    account.count("hits", 2)
    assert account.counts == {"hits": 3}
