"""Partitions of even size out of fragments of any size."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.split import SplitLimits, batch_rows, pack, plan_size, split
from lancelake.storage.location import Location


def planned(path: Path, rows: int, rows_per_file: int, **columns: pa.Array) -> object:
    table = pa.table(columns or {"id": pa.array(range(rows))})
    lancelake.write_dataset(table, path / "t.lance", max_rows_per_file=rows_per_file)
    snapshot = open_snapshot(Location.parse(path / "t.lance"), Latest())
    return plan(snapshot, ScanRequest())


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_every_row_is_read_once(tmp_path: Path, cores: int) -> None:
    found = planned(tmp_path, 500_000, 200_000)
    groups = split(found, SplitLimits(cores=cores, max_bytes=1 << 20))  # type: ignore[arg-type]
    covered: dict[int, list[tuple[int, int]]] = {}
    for task in (task for group in groups for task in group):
        stop = task.fragment.physical_rows if task.stop is None else task.stop
        covered.setdefault(task.fragment.id, []).append((task.start, stop or 0))
    lengths = {i: sum(b - a for a, b in ranges) for i, ranges in covered.items()}
    assert lengths == {0: 200_000, 1: 200_000, 2: 100_000}
    for ranges in covered.values():
        assert all(a[1] == b[0] for a, b in zip(sorted(ranges), sorted(ranges)[1:], strict=False))


def test_small_fragments_are_packed(tmp_path: Path) -> None:
    found = planned(tmp_path, 100, 5)
    groups = split(found, SplitLimits(cores=2))  # type: ignore[arg-type]
    assert [len(group) for group in groups] == [10, 10]


def test_a_large_fragment_is_divided_among_cores(tmp_path: Path) -> None:
    found = planned(tmp_path, 400_000, 1_000_000)
    assert len(split(found, SplitLimits(cores=4))) == 4  # type: ignore[arg-type]


def test_wide_rows_come_in_small_batches(tmp_path: Path) -> None:
    vectors = pa.array([[0.0] * 2048] * 10, pa.list_(pa.float32(), 2048))
    assert batch_rows(planned(tmp_path, 10, 10, v=vectors)) == 1024  # type: ignore[arg-type]


def test_narrow_rows_come_in_large_batches(tmp_path: Path) -> None:
    assert batch_rows(planned(tmp_path, 10, 10)) == 65_536  # type: ignore[arg-type]


def test_the_size_of_a_plan_is_that_of_the_columns_it_returns(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(100)), "other": pa.array(range(100))})
    lancelake.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=30)
    source = open_snapshot(Location.parse(tmp_path / "t.lance"), Latest())
    found = plan_size(plan(source, ScanRequest(columns=("id",), filter="other > 5")))
    assert (found.rows, found.bytes) == (100, 800)
    limited = plan_size(plan(source, ScanRequest(columns=("id",), limit=40)))
    assert (limited.rows, limited.bytes) == (40, 320)


def test_the_size_of_compressed_files_is_shared_by_their_columns(tmp_path: Path) -> None:
    rows = 20_000
    table = pa.table({"one": pa.array([1] * rows), "two": pa.array([2] * rows)})
    lancelake.write_dataset(table, tmp_path / "t.lance", data_storage_version="2.1")
    source = open_snapshot(Location.parse(tmp_path / "t.lance"), Latest())
    (fragment,) = source.manifest.fragments
    size = fragment.files[0].file_size_bytes
    assert size is not None and size < 8 * rows
    found = plan_size(plan(source, ScanRequest(columns=("one",))))
    assert found.bytes == pytest.approx(size / 2)


@pytest.mark.parametrize(("cores", "expected"), [(1, 5), (2, 6), (3, 6), (4, 8), (8, 8)])
def test_partitions_occupy_all_cores_until_the_end(
    tmp_path: Path, cores: int, expected: int
) -> None:
    found = planned(tmp_path, 1_000_000, 2_000_000)
    limits = SplitLimits(cores=cores, max_bytes=5 << 19)
    assert len(split(found, limits)) == expected  # type: ignore[arg-type]


def test_items_are_packed_in_their_order(tmp_path: Path) -> None:
    tasks = planned(tmp_path, 100, 5).tasks  # type: ignore[attr-defined]
    groups = list(pack(tasks, lambda task: task.fragment, SplitLimits(cores=2)))
    assert [len(group) for group in groups] == [10, 10]
    assert [task for group in groups for task in group] == list(tasks)


def test_nothing_to_pack_has_no_partition() -> None:
    assert list(pack((), lambda task: task, SplitLimits(cores=2))) == []
