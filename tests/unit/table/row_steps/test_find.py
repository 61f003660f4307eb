from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow.compute as pc
import pytest
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Job, JobProgress, LocalEngine
from lancelake.errors import InvalidExpressionError, LanceTableError
from lancelake.format.ids import FragmentId
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table import row_steps
from lancelake.table.row_steps import (
    Filter,
    FindRows,
    condition_text,
    count_rows,
    divided,
    find_rows,
)
from tests.support.searched_tables import add_segment

ENGINE = LocalEngine(parallelism=2)


def _plain(found: row_steps.RowsByFragment) -> dict[int, list[int]]:
    return {int(i): list(rows) for i, rows in found.items()}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id >= 3 AND id < 6", {0: [3], 1: [0, 1]}),
        (pc.field("id") == 9, {2: [1]}),
        ("id = 2", {}),
        ("id = 100", {}),
        ("false", {}),
        ("id > NULL", {}),
        (None, {0: [0, 1, 3], 1: [0, 1, 2, 3], 2: [0, 1]}),
    ],
)
def test_live_rows_are_found_for_which_a_condition_holds(
    base: Snapshot, condition: Filter | None, expected: dict[int, list[int]]
) -> None:
    assert _plain(find_rows(base, condition, ENGINE)) == expected


@pytest.mark.parametrize("condition", ["id + 1", "name", "missing = 1", "id = ", "id = 'x'"])
def test_what_is_no_condition_on_the_table_is_refused(base: Snapshot, condition: str) -> None:
    with pytest.raises(InvalidExpressionError):
        find_rows(base, condition, ENGINE)


def test_a_task_runs_after_it_was_pickled(base: Snapshot) -> None:
    scans = plan(base, ScanRequest(columns=(), filter="id > 4")).tasks
    task = pickle.loads(pickle.dumps(FindRows(scans=scans[:2])))
    assert [list(rows) for rows in row_steps._bitmaps(task.run())] == [[], [1, 2, 3]]


def test_a_large_fragment_is_cut_where_there_are_fewer_than_can_be_looked_at_at_once(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_steps, "_LEAST_ROWS", 2)
    scans = plan(base, ScanRequest(columns=(), filter="id > 0")).tasks
    assert divided(scans, 3) == list(scans)
    cut = [(part.fragment.id, part.start, part.stop) for part in divided(scans[:2], 4)]
    assert cut == [(0, 0, 2), (0, 2, 4), (1, 0, 2), (1, 2, 4)]
    found = find_rows(base, "id > 0", LocalEngine(parallelism=5))
    assert _plain(found) == {0: [1, 3], 1: [0, 1, 2, 3], 2: [0, 1]}


@pytest.mark.parametrize(("together", "tasks"), [(1, 3), (2, 2), (64, 1)])
def test_progress_is_reported_for_every_group_of_small_fragments(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch, together: int, tasks: int
) -> None:
    monkeypatch.setattr(row_steps, "_GROUP_SCANS", together)
    told: list[JobProgress] = []
    found = find_rows(base, "id > 0", ENGINE, progress=told.append)
    assert [(p.done, p.total) for p in told] == [(n + 1, tasks) for n in range(tasks)]
    assert len(found) == 3


def test_what_an_engine_raises_is_raised(base: Snapshot) -> None:
    class Broken:
        parallelism = 1

        def run(self, job: Job) -> object:
            raise LanceTableError("broken")

    with pytest.raises(LanceTableError, match="broken"):
        find_rows(base, "id > 0", Broken())  # type: ignore[arg-type]


def test_rows_are_counted_over_all_fragments() -> None:
    assert count_rows({FragmentId(0): BitMap([1, 2]), FragmentId(4): BitMap([7])}) == 3


@pytest.mark.parametrize(
    ("condition", "text"),
    [(None, "true"), ("a = 1", "a = 1"), (pc.field("a") > 1, "(a > 1)")],
)
def test_a_condition_is_shown_as_text(condition: Filter | None, text: str) -> None:
    assert condition_text(condition) == text


def test_rows_that_an_index_knows_are_not_read(dataset: lance.LanceDataset) -> None:
    add_segment(dataset.uri, "id", "BTREE")
    snapshot = lance.dataset(dataset.uri)._snapshot
    jobs: list[Job] = []

    class Watched:
        parallelism = 2

        def run(self, job: Job) -> Iterator[bytes]:
            jobs.append(job)
            return ENGINE.run(job)

    assert _plain(find_rows(snapshot, "id >= 3 AND id < 6", Watched())) == {0: [3], 1: [0, 1]}
    assert [len(job.tasks) for job in jobs] == [0]
