"""Scan tasks return the rows of their fragment, also after pickling."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidExpressionError
from lancelake.format.frozen import FrozenMap
from lancelake.scan.execute import RowFetcher, count, execute, kept_offsets
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, open_source

REQUESTS = {
    "all": ScanRequest(),
    "some columns": ScanRequest(columns=("st.x", "_rowid", "text")),
    "computed": ScanRequest(columns=FrozenMap({"twice": "key * 2", "id": "_rowid"})),
    "filtered": ScanRequest(filter="a > 2 AND st.x IS NOT NULL"),
    "late": ScanRequest(filter="a > 2", late_materialization=True),
    "by row id": ScanRequest(columns=("key",), filter="_rowid > 3"),
    "versions": ScanRequest(columns=("_row_created_at_version", "_row_last_updated_at_version")),
    "offsets": ScanRequest(columns=("key", "_rowoffset")),
    "no columns": ScanRequest(columns=()),
    "deleted rows": ScanRequest(include_deleted_rows=True, with_row_id=True),
    "small batches": ScanRequest(batch_size=2),
}
each_request = pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)


@each_request
@pytest.mark.parametrize("table_name", ["source", "stable_source"])
def test_task_gives_the_same_rows_after_a_journey(
    request_: ScanRequest, table_name: str, request: pytest.FixtureRequest
) -> None:
    source: Snapshot = request.getfixturevalue(table_name)
    scan = plan(source, request_)
    for task in scan.tasks:
        here = pa.Table.from_batches(execute(task), schema=scan.schema)
        again = pickle.loads(pickle.dumps(task))
        assert_same_table(pa.Table.from_batches(execute(again), schema=scan.schema), here)


@each_request
def test_tasks_together_give_the_rows_of_the_scan(source: Snapshot, request_: ScanRequest) -> None:
    scan = plan(source, request_)
    batches = [batch for task in scan.tasks for batch in execute(task)]
    assert_same_table(pa.Table.from_batches(batches, schema=scan.schema), run(scan).read_all())


@each_request
def test_every_batch_has_the_schema_of_the_plan(source: Snapshot, request_: ScanRequest) -> None:
    scan = plan(source, request_)
    for batch in run(scan):
        assert batch.schema.equals(scan.schema, check_metadata=True) or not scan.schema.names


@pytest.mark.parametrize("late", [True, False, None, ("text",), ("key",)])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 1000, (1 << 32) - 1])
def test_when_columns_are_read_does_not_change_the_rows(
    source: Snapshot, table: Varied, late: bool | tuple[str, ...] | None, batch_size: int | None
) -> None:
    request = ScanRequest(filter="key % 3 <> 0", late_materialization=late, batch_size=batch_size)
    expected = table.rows.filter(pa.array([key % 3 != 0 for key in table.keys]))
    assert_same_table(run(plan(source, request)).read_all(), expected)


@pytest.mark.parametrize("late", [True, False])
def test_batches_are_no_larger_than_asked_for(source: Snapshot, late: bool) -> None:
    request = ScanRequest(filter="key >= 0", batch_size=3, late_materialization=late)
    sizes = [batch.num_rows for batch in run(plan(source, request))]
    assert max(sizes) == 3


def test_few_rows_that_are_read_late_fill_their_batches(source: Snapshot) -> None:
    request = ScanRequest(filter="key % 2 = 0", batch_size=2, late_materialization=True)
    for task in plan(source, request).tasks:
        assert [batch.num_rows for batch in execute(task)][:-1] == [2] * (count(task) - 1 >> 1)


def test_row_ids_are_addresses_or_stable(source: Snapshot, stable_source: Snapshot) -> None:
    request = ScanRequest(columns=("key", "_rowid", "_rowaddr"))
    plain = run(plan(source, request)).read_all()
    stable = run(plan(stable_source, request)).read_all()
    assert plain["_rowid"] == plain["_rowaddr"]
    assert stable["_rowid"].to_pylist() == stable["key"].to_pylist()
    assert stable["_rowaddr"] == plain["_rowaddr"]


def test_row_versions_name_the_commit_that_added_a_row(stable_source: Snapshot) -> None:
    request = ScanRequest(columns=("key", "_row_created_at_version"))
    rows = run(plan(stable_source, request)).read_all().to_pylist()
    found = {row["key"]: row["_row_created_at_version"] for row in rows}
    assert (found[0], found[31], found[36]) == (1, 7, 9)


def test_rows_are_numbered_in_the_order_of_the_version(source: Snapshot) -> None:
    found = run(plan(source, ScanRequest(columns=("_rowoffset",)))).read_all()
    assert found["_rowoffset"].to_pylist() == list(range(27))


def test_filter_by_number_finds_the_row_of_that_number(source: Snapshot, table: Varied) -> None:
    request = ScanRequest(columns=("key",), filter="_rowoffset IN (0, 7, 26)")
    found = run(plan(source, request)).read_all()["key"].to_pylist()
    assert found == [table.keys[i] for i in (0, 7, 26)]


def test_deleted_rows_have_neither_id_nor_address(source: Snapshot) -> None:
    request = ScanRequest(
        columns=("key",), include_deleted_rows=True, with_row_id=True, with_row_address=True
    )
    rows = run(plan(source, request)).read_all().to_pylist()
    gone = {row["key"] for row in rows if row["_rowid"] is None}
    assert len(rows) == 37
    assert gone == {key for key in range(30) if key % 4 == 1} | {30, 35}
    assert {row["key"] for row in rows if row["_rowaddr"] is None} == gone


def test_deleted_rows_have_the_number_of_the_next_live_one(source: Snapshot) -> None:
    request = ScanRequest(
        columns=("key", "_rowoffset"), include_deleted_rows=True, with_row_id=True
    )
    rows = run(plan(source, request)).read_all().to_pylist()
    found = {row["key"]: row["_rowoffset"] for row in rows}
    assert [found[key] for key in (0, 1, 2, 9, 10, 13, 30, 31)] == [0, 1, 1, 7, 7, 10, 22, 22]


@pytest.mark.parametrize(("share", "suffix"), [(100, "arrow"), (2, "bin")])
def test_deletions_of_either_encoding_are_left_out(tmp_path: Path, share: int, suffix: str) -> None:
    table = pa.table({"k": range(20_000)})
    written = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=10_000)
    written.delete(f"k % {share} = 0")
    assert len(list((tmp_path / "t/_deletions").glob(f"*.{suffix}"))) == 2
    source = open_source(tmp_path / "t")
    live = [k for k in range(20_000) if k % share]
    for request in (ScanRequest(), ScanRequest(filter="k >= 0", batch_size=999)):
        assert run(plan(source, request)).read_all()["k"].to_pylist() == live
    page = run(plan(source, ScanRequest(offset=len(live) - 3))).read_all()
    assert page["k"].to_pylist() == live[-3:]


def test_fetch_returns_rows_by_offset(source: Snapshot) -> None:
    (task, *_) = plan(source, ScanRequest(columns=("key", "text"))).tasks
    offsets = np.array([0, 1, 9], dtype=np.uint64)
    assert RowFetcher(task).fetch(offsets)["key"].to_pylist() == [0, 1, 9]


def test_fetch_of_no_rows_has_the_columns(source: Snapshot) -> None:
    (task, *_) = plan(source, ScanRequest(columns=("key", "z"))).tasks
    found = RowFetcher(task).fetch(np.array([], dtype=np.uint64))
    assert (found.num_rows, found.schema.names) == (0, ["key", "z"])


@pytest.fixture
def damaged(table: Varied, tmp_path: Path) -> Path:
    """Return a copy of the table, to be damaged."""
    return Path(shutil.copytree(table.uri, tmp_path / "damaged.lance"))


def test_missing_data_file_is_named_with_table_and_version(damaged: Path) -> None:
    source = open_source(damaged)
    gone = source.manifest.fragments[1].files[0].path
    (damaged / "data" / gone).unlink()
    with pytest.raises(CorruptTableError, match=gone) as caught:
        run(plan(source, ScanRequest())).read_all()
    assert (caught.value.table, caught.value.version) == (str(damaged), source.manifest.version)


def test_missing_deletion_file_is_named_with_table_and_version(damaged: Path) -> None:
    source = open_source(damaged)
    (gone, *_) = (damaged / "_deletions").glob("0-*")
    gone.unlink()
    with pytest.raises(CorruptTableError, match=gone.name) as caught:
        run(plan(source, ScanRequest())).read_all()
    assert (caught.value.table, caught.value.version) == (str(damaged), source.manifest.version)


def test_truncated_data_file_is_named(damaged: Path) -> None:
    source = open_source(damaged)
    path = damaged / "data" / source.manifest.fragments[0].files[0].path
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptTableError, match=path.name):
        run(plan(source, ScanRequest())).read_all()


def test_columns_of_other_files_are_read_when_one_is_missing(damaged: Path) -> None:
    source = open_source(damaged)
    (damaged / "data" / source.manifest.fragments[0].files[1].path).unlink()
    assert run(plan(source, ScanRequest(columns=("key",)))).read_all().num_rows == 27


def test_failure_on_a_value_names_table_and_version(source: Snapshot) -> None:
    scan = plan(source, ScanRequest(filter="CAST(text AS int) = 1"))
    with pytest.raises(InvalidExpressionError, match="CAST") as caught:
        run(scan).read_all()
    assert caught.value.version == source.manifest.version


@pytest.mark.parametrize("recheck", [True, False])
def test_a_task_of_some_rows_reads_those_that_match(tmp_path: Path, recheck: bool) -> None:
    written = lance.write_dataset(pa.table({"key": range(10)}), tmp_path / "t")
    written.delete("key = 2")
    scan = plan(open_source(tmp_path / "t"), ScanRequest(filter="key < 5", columns=("key",)))
    task = replace(scan.tasks[0], rows=FrozenBitMap([0, 2, 4, 7]), recheck=recheck)
    expected = [0, 4] if recheck else [0, 4, 7]
    assert [key for batch in execute(task) for key in batch["key"].to_pylist()] == expected
    assert list(kept_offsets(task)) == expected
    assert count(task) == len(expected)
