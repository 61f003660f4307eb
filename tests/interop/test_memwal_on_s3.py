"""A MemWAL on an S3 endpoint, where the WAL is fenced by conditional puts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import WriterFencedError
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.search import find_rows
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.view import Freshness, open_view
from lancelake.storage.location import Location
from tests.support.memwal_tables import keys, rows, seen, writer
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


def test_rows_are_written_read_and_merged_in_a_bucket(server: S3Server) -> None:
    uri, options = f"s3://{server.new_bucket()}/t.lance", server.storage_options
    lance.write_dataset(rows((1, "base"), (2, "base")), uri, storage_options=options)
    place = Location.parse(uri, options)
    base = open_snapshot(place, Latest())
    base = initialize(base, bucketed(base, "id", 1))
    old = writer(base)
    old.put(rows((1, "new"), (3, "new")))
    old.flush()
    old.delete(keys(2))
    mine = writer(base)
    with pytest.raises(WriterFencedError):
        old.put(rows((4, "late")))
    assert seen(base) == {1: "new", 3: "new"}
    assert find_rows(open_view(base, Freshness.DURABLE), keys(2, 3)).to_pylist() == [
        {"id": 3, "name": "new"}
    ]
    mine.close()
    merge_generations(base)
    assert seen(open_snapshot(place, Latest()), Freshness.BASE) == {1: "new", 3: "new"}
