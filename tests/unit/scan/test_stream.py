"""Batches are ordered and of the requested size, and threads end."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, open_source

WAIT_S = 30


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a table of twenty fragments with fifty rows each."""
    path = tmp_path_factory.mktemp("stream") / "many.lance"
    lance.write_dataset(pa.table({"k": range(1000)}), path, max_rows_per_file=50)
    return open_source(path)


def keys(scan: ScanPlan) -> list[int]:
    return list(run(scan).read_all()["k"].to_pylist())


@pytest.mark.parametrize("readahead", [1, 2, 7, 64])
@pytest.mark.parametrize("filter", [None, "k >= 0"])
def test_rows_come_in_order_however_many_fragments_are_read_at_once(
    many: Snapshot, readahead: int, filter: str | None
) -> None:
    request = ScanRequest(fragment_readahead=readahead, filter=filter, batch_size=7)
    assert keys(plan(many, request)) == list(range(1000))


@pytest.mark.parametrize(
    ("limit", "offset"), [(0, 0), (1, 0), (50, 0), (51, 49), (5, 998), (1000, 0), (9, 1000)]
)
@pytest.mark.parametrize("filter", [None, "k >= 0"])
def test_limit_and_offset_cut_the_stream(
    many: Snapshot, limit: int, offset: int, filter: str | None
) -> None:
    request = ScanRequest(limit=limit, offset=offset, filter=filter, fragment_readahead=3)
    assert keys(plan(many, request)) == list(range(1000))[offset : offset + limit]


def test_strict_batches_have_the_size_asked_for_across_fragments(many: Snapshot) -> None:
    request = ScanRequest(batch_size=70, strict_batch_size=True)
    sizes = [batch.num_rows for batch in run(plan(many, request))]
    assert sizes == [70] * 14 + [20]


def test_batches_end_with_their_fragment_unless_strict(many: Snapshot) -> None:
    request = ScanRequest(batch_size=30, fragment_ids=(0, 1, 2))
    sizes = [batch.num_rows for batch in run(plan(many, request))]
    assert sizes == [30, 20] * 3


def test_many_small_fragments_share_batches_of_the_size_asked_for(many: Snapshot) -> None:
    sizes = [batch.num_rows for batch in run(plan(many, ScanRequest(batch_size=30)))]
    assert sizes == [30] * 33 + [10]


def assert_all_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("read", [0, 1, 5])
def test_threads_end_when_a_scan_is_left_half_way(many: Snapshot, read: int) -> None:
    before = set(threading.enumerate())
    reader = run(plan(many, ScanRequest(fragment_readahead=4, batch_size=5)))
    for _ in range(read):
        reader.read_next_batch()
    started = [thread for thread in threading.enumerate() if thread not in before]
    del reader
    gc.collect()
    assert_all_end(started)


def test_threads_end_when_a_scan_is_done(many: Snapshot) -> None:
    before = set(threading.enumerate())
    reader = run(plan(many, ScanRequest(fragment_readahead=4)))
    first = reader.read_next_batch()
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert first.num_rows + reader.read_all().num_rows == 1000
    assert_all_end(started)


@pytest.mark.parametrize("readahead", [1, 4])
def test_failure_in_a_fragment_ends_the_scan_at_its_place(
    table: Varied, tmp_path: Path, readahead: int
) -> None:
    path = Path(shutil.copytree(table.uri, tmp_path / "damaged.lance"))
    source = open_source(path)
    (path / "data" / source.manifest.fragments[2].files[0].path).unlink()
    before = set(threading.enumerate())
    reader = run(plan(source, ScanRequest(fragment_readahead=readahead, batch_size=1)))
    assert [reader.read_next_batch().num_rows for _ in range(15)] == [1] * 15
    with pytest.raises(CorruptTableError, match="missing"):
        reader.read_all()
    assert_all_end([t for t in threading.enumerate() if t not in before])


class _Asker(pa.dataset.Dataset):
    """Hands the batches of a scan to DataFusion, which asks from a thread of its own."""

    def __init__(self, scan: ScanPlan) -> None:
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        return self._scan.schema

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scan.schema

    def get_fragments(self, filter: object = None) -> list[_Asker]:
        return [self]

    def scanner(self, *_: object, **__: object) -> _Asker:
        return self

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(run(self._scan))


@pytest.mark.parametrize("readahead", [1, 4])
def test_filters_work_when_datafusion_asks_for_the_rows(many: Snapshot, readahead: int) -> None:
    scan = plan(many, ScanRequest(filter="k % 2 = 0", fragment_readahead=readahead))
    context = SessionContext()
    context.register_dataset("t", _Asker(scan))
    batches = context.sql("SELECT k FROM t ORDER BY k").collect()
    found = pa.Table.from_batches(batches)["k"].to_pylist()
    assert found == list(range(0, 1000, 2))


def test_scan_of_a_table_without_rows_has_its_schema(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("st", pa.struct([("x", pa.string())]))])
    lance.write_dataset(schema.empty_table(), tmp_path / "t", data_storage_version="2.1")
    source = open_source(tmp_path / "t")
    for request in (ScanRequest(), ScanRequest(filter="k > 1"), ScanRequest(columns=("st.x",))):
        scan = plan(source, request)
        assert_same_table(run(scan).read_all(), scan.schema.empty_table())


def test_plan_can_be_run_again(many: Snapshot) -> None:
    scan = plan(many, ScanRequest(filter="k < 75"))
    assert keys(scan) == keys(scan) == list(range(75))
