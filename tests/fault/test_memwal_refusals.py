"""Bad input, full disks and clocks that jump: clear errors, and nothing is lost or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import (
    CorruptTableError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
)
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal import details
from lancelake.format.operations import CreateIndex
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import details_of
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.view import Freshness, open_view
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location, Session
from lancelake.table.publish import CommitChoices, new_transaction, publish
from tests.support.failing_store import FailingCalls
from tests.support.manual_clock import ManualClock
from tests.support.memwal_tables import (
    INLINE,
    KEY,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)
from tests.support.s3_server import s3_server

DAY_S = 86400.0
WRITES = frozenset({"create", "put", "put_stream", "copy"})


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    with disk_sync.waiting(waits=False):
        yield


def files(uri: Path) -> set[Path]:
    return {path for path in (uri / "_mem_wal").rglob("*") if path.is_file()}


BAD_ROWS = [
    (rows((1, "x")).set_column(0, "id", pa.array([None], pa.int64())), "nulls|null"),
    (rows((1, "x")).drop_columns(["name"]), "name is missing"),
    (rows((1, "x")).append_column("more", pa.array([1])), "more"),
    (rows((1, "x")).set_column(1, "name", pa.array([1.5])), "name"),
    (rows((1, "x")).set_column(0, "id", pa.array(["a"])), "id"),
]


@pytest.mark.parametrize(("given", "problem"), BAD_ROWS)
def test_rows_that_do_not_fit(tmp_path: Path, given: pa.Table, problem: str) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = TableWriter(base, INLINE)
    with pytest.raises((InvalidRequestError, SchemaMismatchError), match=problem):
        mine.put(given)
    assert files(tmp_path / "t") == set()


def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    mine = TableWriter(new_table(tmp_path / "t", (1, "base")), INLINE)
    with pytest.raises(LanceTableError):
        mine.delete(pa.table({"id": pa.array([None], pa.int64())}))
    with pytest.raises(LanceTableError):
        mine.delete(pa.table({"other": [1]}))
    assert files(tmp_path / "t") == set()


@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.date32(), pa.timestamp("us"), pa.decimal128(10, 2), pa.binary(4)]
)
def test_keys_that_no_release_takes(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("id", kind, nullable=False, metadata=KEY)])
    lance.write_dataset(schema.empty_table(), tmp_path / "t")
    version = newest(tmp_path / "t").version
    with pytest.raises(UnsupportedError, match="cannot be the key"):
        initialize(newest(tmp_path / "t"), None)
    assert newest(tmp_path / "t").version == version


def test_two_specs(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    (entry,) = [index for index in base.indices if index.name == MEM_WAL]
    found = details_of(base)
    two = details.encode(replace(found, specs=(*found.specs, *found.specs)))
    change = CreateIndex(new_indices=(replace(entry, details=two),), removed_indices=(entry,))
    choices = CommitChoices(after=())
    made = publish(base, new_transaction(change, base.version, choices), choices)
    with pytest.raises(CorruptTableError, match="2 region specs"):
        TableWriter(made, INLINE)
    assert files(tmp_path / "t") == set()


def test_a_store_without_conditional_puts() -> None:
    with s3_server() as server:
        uri = f"s3://{server.new_bucket()}/t.lance"
        options = server.storage_options
        lance.write_dataset(rows((1, "base")), uri, storage_options=options)
        base = open_snapshot(Location.parse(uri, options), Latest())
        initialize(base, bucketed(base, "id", 1))
        without = Location.parse(uri, {**options, "conditional_put": "disabled"})
        mine = TableWriter(open_snapshot(without, Latest()), INLINE)
        with pytest.raises(UnsupportedError):
            mine.put(rows((1, "x")))
        bucket = uri.removeprefix("s3://").partition("/")[0]
        assert [key for key in server.keys(bucket) if "_mem_wal" in key] == []


@contextmanager
def full_disk(first: int) -> Iterator[FailingCalls]:
    """Let every write fail from one on."""

    def full() -> BaseException:
        return StorageError("no space left on the device")

    calls = FailingCalls(range(first, first + 10_000), error=full, only=WRITES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", lambda uri: calls.on(LocalStore(uri)))
        yield calls


@pytest.mark.parametrize("first", range(0, 24, 3))
def test_a_disk_that_becomes_full(tmp_path: Path, first: int) -> None:
    uri = tmp_path / "t"
    new_table(uri, (1, "base"))
    expected: dict[int, str | None] = {1: "base"}
    with full_disk(first), suppress(LanceTableError):
        mine = writer(newest(uri))
        for turn in range(4):
            mine.put(rows((turn, f"{turn}")))
            expected[turn] = f"{turn}"
            mine.flush()
            merge_generations(newest(uri))
    assert seen(newest(uri)) == expected
    with writer(newest(uri)) as again:
        again.put(rows((9, "after")))
    merge_generations(newest(uri))
    for freshness in Freshness:
        assert seen(newest(uri), freshness) == {**expected, 9: "after"}


@pytest.mark.parametrize("jump_s", [-30 * DAY_S, 30 * DAY_S])
def test_clocks_that_jump(tmp_path: Path, jump_s: float) -> None:
    uri = tmp_path / "t"
    new_table(uri, (1, "base"))
    clock = ManualClock()
    session = Session(clock=clock)
    mine = writer(newest(uri, session))
    expected: dict[int, str | None] = {1: "base"}
    for turn in range(4):
        mine.put(rows((turn, f"{turn}")))
        expected[turn] = f"{turn}"
        mine.flush()
        clock.wall_s += jump_s
        merge_generations(newest(uri, session))
        collect_garbage(newest(uri, session))
        assert seen(newest(uri)) == expected
    mine.delete(keys(0))
    del expected[0]
    mine.close()
    merge_generations(newest(uri, session))
    for freshness in Freshness:
        assert seen(newest(uri), freshness) == expected


def test_a_changed_type_while_rows_are_not_merged(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri, (1, "base")))
    mine.put(rows((2, "tail")))
    version = newest(uri).version
    with pytest.raises(UnsupportedError, match="while the table has a MemWAL"):
        lance.dataset(uri).alter_columns({"path": "name", "data_type": pa.large_utf8()})
    with pytest.raises(UnsupportedError, match="while the table has a MemWAL"):
        lance.dataset(uri).add_columns({"twice": "id * 2"})
    assert newest(uri).version == version


def test_columns_that_are_added_renamed_and_dropped_while_rows_are_not_merged(
    tmp_path: Path,
) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri, (1, "base")))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    ds = lance.dataset(uri)
    ds.add_columns(pa.field("more", pa.int32()))
    ds.alter_columns({"path": "name", "name": "title"})
    view = open_view(newest(uri), Freshness.DURABLE).to_table().sort_by("id").to_pylist()
    titles = [(1, "base"), (2, "flushed"), (3, "tail")]
    assert view == [{"id": key, "title": title, "more": None} for key, title in titles]
    lance.dataset(uri).drop_columns(["title"])
    with writer(newest(uri)):
        pass
    merge_generations(newest(uri))
    found = lance.dataset(uri).to_table().sort_by("id").to_pylist()
    assert found == [{"id": key, "more": None} for key in (1, 2, 3)]


@pytest.mark.parametrize(("column", "problem"), [("name", "added last"), ("id", "key column id")])
def test_columns_that_rows_in_the_log_need(tmp_path: Path, column: str, problem: str) -> None:
    uri = tmp_path / "t"
    new_table(uri)
    version = newest(uri).version
    with pytest.raises(UnsupportedError, match=problem):
        lance.dataset(uri).drop_columns([column])
    assert newest(uri).version == version


def test_a_column_is_not_given_the_values_of_a_dropped_one(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    lance.dataset(uri).add_columns(pa.field("more", pa.int32()))
    lance.dataset(uri).drop_columns(["name"])
    lance.dataset(uri).add_columns(pa.field("other", pa.utf8()))
    found = open_view(newest(uri), Freshness.DURABLE).to_table(["other"])
    assert found.column("other").to_pylist() == [None, None]
