"""A measured scan counts the rows, bytes and requests of its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.scan.plan import ScanMeasure
from lancelake.scan.planner import plan
from lancelake.scan.request import Ordering, ScanRequest
from lancelake.scan.stream import count, run

ROWS = 50_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    path: Path = tmp_path_factory.mktemp("measured")
    table = pa.table({"a": np.arange(ROWS), "b": np.arange(ROWS) * 0.5})
    return lance.write_dataset(table, str(path / "t"), max_rows_per_file=ROWS // 5)


def _run(dataset: lance.LanceDataset, request: ScanRequest) -> ScanMeasure:
    measure = ScanMeasure()
    planned = measure.planned(lambda: plan(dataset._snapshot, request))
    for _ in run(planned, measure):
        pass
    return measure


def test_a_scan_of_all_rows_reads_each_file_once(dataset: lance.LanceDataset) -> None:
    measure = _run(dataset, ScanRequest(columns=("a",)))
    assert measure.scan.rows == measure.output.rows == ROWS
    assert measure.scan_io.account.rows_read == ROWS
    assert measure.scan_io.account.requests == 5


def test_fewer_columns_are_fewer_bytes(dataset: lance.LanceDataset) -> None:
    one, both = (_run(dataset, ScanRequest(columns=c)) for c in (("a",), ("a", "b")))
    assert one.scan_io.size.is_exact
    assert 0 < one.scan_io.size.size_bytes < both.scan_io.size.size_bytes


def test_a_limit_returns_fewer_rows_than_it_scans(dataset: lance.LanceDataset) -> None:
    request = ScanRequest(columns=("a",), order_by=(Ordering(column="a"),), limit=3)
    measure = _run(dataset, request)
    assert (measure.scan.rows, measure.output.rows) == (ROWS, 3)


def test_a_count_reads_only_the_filter(dataset: lance.LanceDataset) -> None:
    measure = ScanMeasure()
    request = ScanRequest(filter="a < 10", use_scalar_index=False)
    planned = measure.planned(lambda: plan(dataset._snapshot, request))
    assert measure.counted(lambda: count(planned)) == 10
    alone = _run(dataset, ScanRequest(columns=("a",)))
    assert measure.scan_io.size == alone.scan_io.size


def test_planning_is_shared_by_runs(dataset: lance.LanceDataset) -> None:
    measure = _run(dataset, ScanRequest())
    other = measure.another_run()
    assert other.planning is measure.planning
    assert other.scan.rows == 0


def test_small_fragments_that_are_joined_count_once(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(200)})
    ds = lance.write_dataset(table, str(tmp_path / "t"), max_rows_per_file=10)
    measure = _run(ds, ScanRequest())
    sizes = [f.file_size_bytes or 0 for x in ds._snapshot.manifest.fragments for f in x.files]
    assert measure.scan_io.account.store_requests == 20
    assert measure.scan_io.size.size_bytes == sum(sizes)
