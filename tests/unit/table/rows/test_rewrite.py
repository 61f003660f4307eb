from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import FragmentReader
from lancelake.engine.port import LocalEngine
from lancelake.format.fragment import Fragment, from_bytes
from lancelake.format.ids import FragmentId
from lancelake.format.rowids import RowIdSequence
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table import row_steps
from lancelake.table.rows import RewriteRows, bind_assignments, rewrite_rows

ROWS = {FragmentId(0): BitMap([1, 3]), FragmentId(2): BitMap([0])}


def _values(base: Snapshot, fragment: Fragment) -> list[tuple[object, ...]]:
    reader = FragmentReader(base.files, base.manifest_at, fragment, base.manifest.schema)
    rows = pa.Table.from_batches(
        list(reader.batches(start=0, stop=reader.physical_rows, batch_rows=100))
    ).to_pylist()
    return [tuple(row.values()) for row in rows]


def _ids(fragment: Fragment, count: int | None = None) -> list[int]:
    assert fragment.row_ids is not None
    rows = count or fragment.physical_rows or 0
    return list(RowIdSequence.decode(fragment.row_ids, physical_rows=rows).values().tolist())


def test_rows_are_written_in_order_with_new_values(base: Snapshot) -> None:
    assignments = bind_assignments({"name": "concat(name, '!')"}, base.manifest.schema)
    (made,) = rewrite_rows(base, ROWS, assignments, LocalEngine())
    assert _values(base, made) == [(1, "n1!", 1.5), (3, "n3!", 4.5), (8, "n8!", 12.0)]


def test_stable_row_ids_go_with_the_rows(base: Snapshot) -> None:
    assignments = bind_assignments({"name": "'x'"}, base.manifest.schema)
    (made,) = rewrite_rows(base, ROWS, assignments, LocalEngine())
    if base.manifest.has_stable_row_ids:
        assert _ids(made) == [1, 3, 8]
    else:
        assert made.row_ids is None


def test_no_rows_make_no_fragment(base: Snapshot) -> None:
    assignments = bind_assignments({"name": "'x'"}, base.manifest.schema)
    assert rewrite_rows(base, {}, assignments, LocalEngine()) == ()


def test_rows_that_fill_a_file_are_a_task_of_their_own(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(row_steps.row_files(base), max_rows_per_file=2)
    monkeypatch.setattr(row_steps, "row_files", lambda _: small)
    assignments = bind_assignments({"name": "'x'"}, base.manifest.schema)
    made = rewrite_rows(base, ROWS, assignments, LocalEngine())
    assert [fragment.physical_rows for fragment in made] == [2, 1]


def test_a_task_runs_after_it_was_pickled(base: Snapshot) -> None:
    is_stable = base.manifest.has_stable_row_ids
    scans = plan(base, ScanRequest(with_row_id=is_stable)).tasks
    task = RewriteRows(
        scans=(scans[1].matching(BitMap([0, 2])),),
        assignments=bind_assignments({"weight": "0"}, base.manifest.schema),
        write=row_steps.row_files(base),
        keeps_row_ids=is_stable,
    )
    (made,) = from_bytes(pickle.loads(pickle.dumps(task)).run())
    assert _values(base, made) == [(4, "n4", 0.0), (6, "n6", 0.0)]
