"""Small fragments are read together, and give the same rows as each by itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError
from lancelake.format import layout
from lancelake.scan import stream
from lancelake.scan.execute import count, execute, kept_offsets
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import (
    count_group,
    execute_group,
    group_tasks,
    kept_offsets_of,
    pack_tasks,
)
from lancelake.scan.task_rows import ScanColumns

FRAGMENTS = 12
META = ("_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version")


@pytest.fixture(params=["addresses", "stable row ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Return twelve fragments of ten rows, with deleted rows in two of them."""
    keys = range(FRAGMENTS * 10)
    rows = pa.table({"k": keys, "s": [None if k % 4 == 0 else f"s{k}" for k in keys]})
    found = lance.write_dataset(
        rows,
        tmp_path / "t.lance",
        max_rows_per_file=10,
        enable_stable_row_ids=request.param == "stable row ids",
    )
    found.delete("k IN (3, 4, 57)")
    return found


def tasks(dataset: lance.LanceDataset, request: ScanRequest) -> tuple[ScanTask, ...]:
    return plan(dataset._snapshot, request).tasks


def whole(dataset: lance.LanceDataset, request: ScanRequest) -> tuple[stream.Group, ScanColumns]:
    (group,) = group_tasks(tasks(dataset, request))
    return group, ScanColumns.of(group[0].spec)


REQUESTS = [
    ScanRequest(),
    ScanRequest(columns=("s", *META)),
    ScanRequest(filter="k % 7 = 1", with_row_id=True),
    ScanRequest(filter="k = 58", columns=("s", "_rowaddr"), late_materialization=True),
    ScanRequest(filter="s IS NULL", columns=()),
    ScanRequest(include_deleted_rows=True, with_row_id=True),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_rows_are_those_of_each_fragment_in_order(
    dataset: lance.LanceDataset, request_: ScanRequest
) -> None:
    group, columns = whole(dataset, request_)
    schema = group[0].spec.row_schema
    expected = [batch for task in group for batch in execute(task)]
    found = pa.Table.from_batches(execute_group(group, columns), schema)
    assert found.to_pylist() == pa.Table.from_batches(expected, schema).to_pylist()
    assert found.num_rows == sum(batch.num_rows for batch in expected)


@pytest.mark.parametrize("condition", ["k % 7 = 1", "k = 58", "k < 0", "k >= 0"])
def test_counts_and_offsets_are_those_of_each_fragment(
    dataset: lance.LanceDataset, condition: str
) -> None:
    group, columns = whole(dataset, ScanRequest(columns=(), filter=condition))
    assert count_group(group, columns) == sum(count(task) for task in group)
    assert kept_offsets_of(group, columns) == [kept_offsets(task) for task in group]


def test_no_file_of_a_group_is_opened_by_itself(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, columns = whole(dataset, ScanRequest())

    def one_by_one(*arguments: object) -> None:
        assert len(arguments) == 3

    monkeypatch.setattr(stream.execute, "count", one_by_one)
    count_group(group, columns)


@pytest.mark.parametrize(
    "request_",
    [ScanRequest(limit=30), ScanRequest(columns=("k", "_rowoffset"))],
    ids=["limit", "rank"],
)
def test_tasks_of_some_rows_or_with_ranks_are_on_their_own(
    dataset: lance.LanceDataset, request_: ScanRequest
) -> None:
    assert all(len(group) == 1 for group in group_tasks(tasks(dataset, request_)[1:]))


@pytest.mark.parametrize(
    ("most_rows", "most_tasks", "sizes"),
    [(1000, 5, [5, 5, 2]), (35, 100, [3, 3, 3, 3]), (5, 100, [1] * 12), (120, 12, [12])],
)
def test_packed_groups_are_bounded_by_rows_and_tasks(
    dataset: lance.LanceDataset, most_rows: int, most_tasks: int, sizes: list[int]
) -> None:
    every = tasks(dataset, ScanRequest())
    found = list(pack_tasks(every, lambda _: 10, most_rows=most_rows, most_tasks=most_tasks))
    assert [len(group) for group in found] == sizes
    assert [task for group in found for task in group] == list(every)


def test_few_fragments_are_on_their_own(dataset: lance.LanceDataset) -> None:
    few = tasks(dataset, ScanRequest())[:7]
    assert list(group_tasks(few)) == [(task,) for task in few]


def test_files_with_other_columns_are_in_another_group(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["s"])
    more = pa.table({"k": range(100)})
    found = lance.write_dataset(more, dataset.uri, mode="append", max_rows_per_file=10)
    sizes = [len(group) for group in group_tasks(tasks(found, ScanRequest()))]
    assert sizes == [FRAGMENTS, 10]


@pytest.mark.parametrize("damage", ["missing", "cut", "wrong bytes"])
def test_an_error_names_the_damaged_file(dataset: lance.LanceDataset, damage: str) -> None:
    group, columns = whole(dataset, ScanRequest())
    (file,) = group[5].fragment.files
    path = Path(dataset.uri, layout.DATA, file.path)
    data = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[:-10])
    if damage == "wrong bytes":
        path.write_bytes(bytes(len(data)))
    with pytest.raises(CorruptTableError, match=file.path):
        list(execute_group(group, columns))
    with pytest.raises(CorruptTableError, match=file.path):
        count_group(*whole(dataset, ScanRequest(filter="k >= 0")))


def test_rows_are_yielded_once_if_the_joined_file_cannot_be_read_to_its_end(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, columns = whole(dataset, ScanRequest(batch_size=7))

    def failing(task: ScanTask, columns: ScanColumns, *source: object) -> object:
        batches = execute(task, columns, *source)
        if source:
            yield from (next(batches), next(batches))
            raise CorruptTableError("no more")
        yield from batches

    monkeypatch.setattr(stream.execute, "execute", failing)
    rows = pa.Table.from_batches(execute_group(group, columns)).column("k").to_pylist()
    assert rows == [k for k in range(FRAGMENTS * 10) if k not in (3, 4, 57)]
