"""The change feed has every row change once, in its version, with its values."""

from __future__ import annotations

import gc
import pickle
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext
from lance.file import LanceFileWriter

import lancelake.pylance
from lancelake.clock import utc_from_ns
from lancelake.errors import (
    InvalidRequestError,
    RefNotFoundError,
    SchemaMismatchError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.feed.changed_rows import execute
from lancelake.storage.location import Location
from lancelake.table.history import history
from tests.support.table_surgery import set_commit_time

face: Any = lancelake.pylance
official: Any = lance
Change = tuple[Any, ...]
WAIT_S = 30


def write(path: Path, keys: range, *, mode: str = "append", **options: Any) -> None:
    table = pa.table({"k": list(keys), "s": [f"s{k}" for k in keys]})
    official.write_dataset(table, path, mode=mode, **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table: 1 has 0 to 5, 2 adds 6 and 7, 3 deletes 1, 4 updates 2, 5 and 6 compact."""
    path = tmp_path / "table.lance"
    write(path, range(6), mode="create", enable_stable_row_ids=True, max_rows_per_file=3)
    write(path, range(6, 8))
    official.dataset(path).delete("k = 1")
    official.dataset(path).update({"s": "'new'"}, where="k = 2")
    official.dataset(path).optimize.compact_files()
    return path


def changes(path: Path | str, *args: Any, **kwargs: Any) -> list[Change]:
    """Return the feed's rows without times."""
    found = face.dataset(path).changes(*args, **kwargs).read_all()
    return [tuple(row.values()) for row in found.drop_columns(["_commit_timestamp"]).to_pylist()]


def times(path: Path) -> list[datetime]:
    """Return when each version was committed, the first at place 1."""
    found = [s.manifest.timestamp_ns or 0 for s in history(Location.parse(path))]
    return [utc_from_ns(0), *(utc_from_ns(ns) for ns in found)]


def test_each_commit_has_its_changes(table: Path) -> None:
    assert changes(table, 1) == [
        (6, "s6", 6, "insert", 2),
        (7, "s7", 7, "insert", 2),
        (1, "s1", 1, "delete", 3),
        (2, "s2", 2, "update_preimage", 4),
        (2, "new", 2, "update_postimage", 4),
    ]


def test_before_version_one_there_was_nothing(table: Path) -> None:
    assert changes(table, 0, 1) == [(k, f"s{k}", k, "insert", 1) for k in range(6)]


def test_a_version_has_no_changes_from_itself(table: Path) -> None:
    assert changes(table, 3, 3) == []
    assert changes(table, 3, 3, net=True) == []


def test_compaction_changes_nothing(table: Path) -> None:
    assert changes(table, 4, 6) == []
    assert changes(table, 4, 6, net=True) == []


def test_a_compaction_whose_transaction_is_lost_changes_nothing(table: Path) -> None:
    plan = face.dataset(table).plan_changes(4, 6, net=True)
    assert plan.tasks
    assert [batch for task in plan.tasks for batch in execute(task)] == []


def test_net_changes_belong_to_the_last_version(table: Path) -> None:
    assert changes(table, 1, net=True) == [
        (1, "s1", 1, "delete", 6),
        (2, "s2", 2, "update_preimage", 6),
        (2, "new", 2, "update_postimage", 6),
        (6, "s6", 6, "insert", 6),
        (7, "s7", 7, "insert", 6),
    ]


def test_net_changes_leave_out_what_came_and_went(table: Path) -> None:
    write(table, range(8, 9))
    official.dataset(table).delete("k = 8")
    official.dataset(table).update({"s": "'other'"}, where="k = 3")
    official.dataset(table).update({"s": "'s3'"}, where="k = 3")
    assert changes(table, 6, net=True) == []
    assert len(changes(table, 6)) == 6


def test_the_feed_ends_at_the_version_that_is_open(table: Path) -> None:
    opened = face.dataset(table, version=3)
    assert opened.changes(2).read_all()["_change_type"].to_pylist() == ["delete"]


def test_the_commit_time_comes_with_each_row(table: Path) -> None:
    found = face.dataset(table).changes(2, 3).read_all()["_commit_timestamp"].to_pylist()
    assert found == [times(table)[3]]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["insert"], {"insert"}),
        ("delete", {"delete"}),
        (["update"], {"update_preimage", "update_postimage"}),
        (["update_postimage"], {"update_postimage"}),
        (["update_preimage", "insert"], {"update_preimage", "insert"}),
    ],
)
def test_kinds_are_chosen(table: Path, kinds: Any, expected: set[str]) -> None:
    assert {change[3] for change in changes(table, 1, kinds=kinds)} == expected


def test_an_unknown_kind_is_refused(table: Path) -> None:
    with pytest.raises(InvalidRequestError, match="unknown kind of change 'upsert'"):
        changes(table, 1, kinds=["upsert"])


def test_columns_are_chosen(table: Path) -> None:
    assert changes(table, 2, 3, columns=["s"]) == [("s1", 1, "delete", 3)]
    assert changes(table, 1, 4, columns=[])[-1] == (2, "update_postimage", 4)


def test_columns_of_the_feed_come_without_asking(table: Path) -> None:
    assert changes(table, 2, 3, columns=["k", "_rowid"]) == [(1, 1, "delete", 3)]


def test_an_unknown_column_is_refused(table: Path) -> None:
    with pytest.raises(InvalidRequestError, match="nothing"):
        changes(table, 1, columns=["nothing"])
    with pytest.raises(InvalidRequestError, match="_rowaddr"):
        changes(table, 1, columns=["_rowaddr"])


@pytest.mark.parametrize(
    "condition",
    [
        "s = 'new' or _change_type = 'delete'",
        (pc.field("s") == "new") | (pc.field("_change_type") == "delete"),
    ],
)
def test_a_filter_looks_at_each_row_of_the_feed(table: Path, condition: Any) -> None:
    found = changes(table, 1, filter=condition, columns=["k"])
    assert found == [(1, 1, "delete", 3), (2, 2, "update_postimage", 4)]


def test_batches_have_the_size_asked_for(table: Path) -> None:
    sizes = [b.num_rows for b in face.dataset(table).changes(0, 1, batch_size=2)]
    assert sizes == [2, 1, 2, 1]


def test_tasks_travel_to_other_processes(table: Path) -> None:
    plan = face.dataset(table).plan_changes(0, filter="k < 7")
    sent = pickle.loads(pickle.dumps(plan))
    here = [b for task in plan.tasks for b in execute(task)]
    there = [b for task in sent.tasks for b in execute(task)]
    assert here == there


def test_another_engine_reads_a_feed_that_filters(table: Path) -> None:
    reader = face.dataset(table).changes(0, filter="k % 2 = 0")
    frame = SessionContext().from_arrow(reader)
    assert frame.count() == 6


def test_threads_end_when_a_feed_is_left(table: Path) -> None:
    before = set(threading.enumerate())
    reader = face.dataset(table).changes(0, batch_size=1)
    reader.read_next_batch()
    started = set(threading.enumerate()) - before
    del reader
    gc.collect()
    for thread in started:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in started)


def test_only_fragments_that_changed_are_read(table: Path) -> None:
    plan = face.dataset(table).plan_changes(2, 4)
    assert [(t.commit.version, type(t).__name__) for t in plan.tasks] == [
        (3, "RowsTask"),
        (4, "RowsTask"),
        (4, "PairTask"),
        (4, "RowsTask"),
    ]


def test_an_overwrite_deletes_and_inserts_all(table: Path) -> None:
    write(table, range(2), mode="overwrite")
    found = changes(table, 6, columns=["k"])
    assert [c[2] for c in found] == ["delete"] * 7 + ["insert"] * 2


def test_a_restore_is_the_difference_by_row(table: Path) -> None:
    official.dataset(table, version=2).restore()
    assert changes(table, 6) == [
        (2, "new", 2, "update_preimage", 7),
        (2, "s2", 2, "update_postimage", 7),
        (1, "s1", 1, "insert", 7),
    ]


def test_time_ranges_leave_out_their_begin(table: Path) -> None:
    when = times(table)
    assert changes(table, when[2], when[3]) == changes(table, 2, 3)
    assert changes(table, when[1] - timedelta(days=1), when[2]) == changes(table, 0, 2)
    assert changes(table, when[3]) == changes(table, 3)


@pytest.mark.parametrize("seen", [1, 2, 3, 4, 5])
def test_nothing_after_a_commit_is_lost_by_its_time_when_clocks_differ(
    table: Path, seen: int
) -> None:
    for version, second in {1: 50, 2: 100, 3: 90, 4: 90, 5: 95, 6: 120}.items():
        set_commit_time(table, version, second * 1_000_000_000)
    assert set(changes(table, times(table)[seen])) >= set(changes(table, seen))


@pytest.mark.parametrize("second", [40, 50, 89, 92, 95, 97, 100, 110, 120])
def test_every_commit_after_a_time_is_reported_when_clocks_differ(table: Path, second: int) -> None:
    committed = {1: 50, 2: 100, 3: 90, 4: 95, 5: 95, 6: 120}
    for version, at in committed.items():
        set_commit_time(table, version, at * 1_000_000_000)
    later = {version for version, at in committed.items() if at > second}
    told = {change[-1] for change in changes(table, utc_from_ns(second * 1_000_000_000))}
    # Compactions change no row.
    assert told >= later - {5, 6}


def test_ranges_by_time_that_meet_leave_no_gap_when_clocks_differ(table: Path) -> None:
    for version, second in {1: 50, 2: 100, 3: 90, 4: 95, 5: 95, 6: 120}.items():
        set_commit_time(table, version, second * 1_000_000_000)
    every = set(changes(table, 0))
    for second in range(51, 121):
        middle = utc_from_ns(second * 1_000_000_000)
        assert {*changes(table, 0, middle), *changes(table, middle)} == every


def test_a_time_range_before_the_table_is_refused(table: Path) -> None:
    start = times(table)[1]
    with pytest.raises(VersionNotFoundError, match="earlier than the first version"):
        changes(table, start - timedelta(days=2), start - timedelta(days=1))


def test_tags_name_versions(table: Path) -> None:
    official.dataset(table).tags.create("start", 2)
    official.dataset(table).tags.create("stop", 3)
    assert changes(table, "start", "stop") == changes(table, 2, 3)


def test_the_changes_of_a_branch_go_back_beyond_its_fork(table: Path) -> None:
    branch = official.dataset(table).create_branch("side", 3)
    write(Path(branch.uri), range(20, 21))
    official.dataset(branch.uri).delete("k = 0")
    assert changes(branch.uri, 1) == [
        (6, "s6", 6, "insert", 2),
        (7, "s7", 7, "insert", 2),
        (1, "s1", 1, "delete", 3),
        (20, "s20", 8, "insert", 4),
        (0, "s0", 0, "delete", 5),
    ]
    assert changes(branch.uri, 2, net=True) == [
        (0, "s0", 0, "delete", 5),
        (1, "s1", 1, "delete", 5),
        (20, "s20", 8, "insert", 5),
    ]


def test_times_and_tags_from_before_a_fork_count_on_a_branch(table: Path) -> None:
    official.dataset(table).tags.create("start", 2)
    official.dataset(table).tags.create("fork", 3)
    branch = official.dataset(table).create_branch("side", 3)
    write(Path(branch.uri), range(20, 21))
    assert changes(branch.uri, times(table)[2]) == changes(branch.uri, 2)
    assert changes(branch.uri, "start") == changes(branch.uri, 2)
    assert changes(branch.uri, "fork") == changes(branch.uri, 3)


def test_a_tag_of_another_line_is_refused(table: Path) -> None:
    branch = official.dataset(table).create_branch("side", 3)
    write(Path(branch.uri), range(20, 21))
    official.dataset(table).tags.create("there", ("side", 4))
    with pytest.raises(RefNotFoundError, match="not in the history"):
        changes(table, 1, "there")


def test_a_clone_has_its_own_changes_only(table: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone.lance"
    official.dataset(table).shallow_clone(str(clone), 4)
    official.dataset(clone).delete("k = 0")
    assert changes(clone, 4) == [(0, "s0", 0, "delete", 5)]
    with pytest.raises(VersionNotFoundError, match="Start at version 4 or later"):
        changes(clone, 2)


def test_without_stable_row_ids_the_feed_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plain.lance"
    write(path, range(3), mode="create")
    write(path, range(3, 5))
    with pytest.raises(UnsupportedError, match="enable_stable_row_ids=True"):
        changes(path, 1)


def test_a_table_without_rows_needs_no_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "empty.lance"
    write(path, range(0), mode="create")
    assert changes(path, 0) == []


def test_a_version_that_was_cleaned_up_is_named(table: Path) -> None:
    official.dataset(table).cleanup_old_versions(older_than=timedelta(0), retain_versions=2)
    with pytest.raises(VersionNotFoundError, match=r"need version 4, .* Start at version 5"):
        changes(table, 1)
    assert changes(table, 5) == []


def test_a_time_whose_versions_were_cleaned_up_is_refused(table: Path) -> None:
    start = times(table)[1]
    official.dataset(table).cleanup_old_versions(older_than=timedelta(0), retain_versions=2)
    with pytest.raises(VersionNotFoundError, match="need version 4"):
        changes(table, start)


def test_inserts_are_reported_without_the_files_of_older_rows(table: Path) -> None:
    first = next(iter(history(Location.parse(table))))
    for fragment in first.manifest.fragments:
        (table / "data" / fragment.files[0].path).unlink()
    assert len(changes(table, 1, 4, kinds="insert")) == 2


def test_a_data_file_that_is_gone_is_named(table: Path) -> None:
    snapshot = next(s for s in history(Location.parse(table)) if s.version == 3)
    gone = snapshot.manifest.fragments[0].files[0].path
    (table / "data" / gone).unlink()
    with pytest.raises(VersionNotFoundError, match=rf"{gone} of version 2, which no longer exists"):
        changes(table, 2, 3)
    assert len(changes(table, 1, 2)) == 2


def test_a_deletion_file_that_is_gone_is_named(table: Path) -> None:
    for file in (table / "_deletions").iterdir():
        file.unlink()
    with pytest.raises(
        VersionNotFoundError, match=r"_deletions.* of version 3, which no longer exists"
    ):
        changes(table, 2, 3)


@pytest.mark.parametrize(("begin", "end"), [(3, 2), (7, None), (1, 9), (-1, 2)])
def test_versions_in_no_order_or_not_there_are_refused(
    table: Path, begin: int, end: int | None
) -> None:
    with pytest.raises((InvalidRequestError, VersionNotFoundError)):
        changes(table, begin, end)


@pytest.mark.parametrize("point", [True, 1.5, ("side", 2), None])
def test_a_point_of_another_kind_is_refused(table: Path, point: Any) -> None:
    with pytest.raises(InvalidRequestError, match="a version number, a tag or a time"):
        changes(table, point)


def test_a_renamed_column_keeps_its_older_values(table: Path) -> None:
    official.dataset(table).alter_columns({"path": "s", "name": "text"})
    found = face.dataset(table).changes(2).read_all()
    assert found["text"].to_pylist() == ["s1", "s2", "new"]


def test_older_values_are_cast_to_the_last_type(table: Path) -> None:
    official.dataset(table).alter_columns({"path": "k", "data_type": pa.int16()})
    found = face.dataset(table).changes(2, kinds="delete").read_all()
    assert found.schema.field("k").type == pa.int16()
    assert found["k"].to_pylist() == [1]


def test_a_column_that_came_later_is_null_before(table: Path) -> None:
    official.dataset(table).add_columns({"double": "k * 2"})
    found = face.dataset(table).changes(2, columns=["double"]).read_all()
    assert found["double"].to_pylist()[:3] == [None, None, None]
    assert changes(table, 6, filter="k = 3", columns=["k", "double"]) == [
        (3, None, 3, "update_preimage", 7),
        (3, 6, 3, "update_postimage", 7),
    ]


def test_an_empty_column_changes_no_row(table: Path) -> None:
    official.dataset(table).add_columns(pa.field("empty", pa.int32()))
    official.dataset(table).drop_columns(["empty"])
    assert changes(table, 6) == []


def test_a_column_that_is_replaced_changes_its_rows(table: Path) -> None:
    official.dataset(table).add_columns(pa.field("v", pa.int64()))
    dataset = official.dataset(table)
    (fragment,) = dataset.get_fragments()
    values = pa.record_batch({"v": list(range(7))})
    with LanceFileWriter(str(table / "data" / "v.lance"), values.schema, version="2.2") as writer:
        writer.write_batch(values)
    file = official.fragment.DataFile("v.lance", [2], [0], 2, 2)
    group = official.LanceOperation.DataReplacementGroup(fragment.fragment_id, file)
    operation = official.LanceOperation.DataReplacement([group])
    official.LanceDataset.commit(str(table), operation, read_version=dataset.version)
    found = changes(table, 7, columns=["v"], kinds="update_postimage")
    assert [change[0] for change in found] == list(range(7))


def test_values_that_cannot_be_cast_are_an_error(table: Path) -> None:
    replaced = pa.table({"k": [1], "s": [2]})
    official.write_dataset(replaced, table, mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="column s in version 6"):
        changes(table, 6)
    assert len(changes(table, 6, columns=["k"])) == 8


def test_columns_of_another_kind_are_an_error(table: Path) -> None:
    replaced = pa.table({"k": [1], "s": [{"a": 1}]})
    official.write_dataset(replaced, table, mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="column s changed its kind at version 7"):
        changes(table, 6)
    assert len(changes(table, 6, columns=["k"])) == 8


def test_a_column_named_as_one_of_the_feed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "named.lance"
    official.write_dataset(pa.table({"_change_type": [1]}), path, enable_stable_row_ids=True)
    with pytest.raises(InvalidRequestError, match="_change_type"):
        changes(path, 0)
