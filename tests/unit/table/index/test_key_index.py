"""The index of the primary key is updated after commits of a table that asks for it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import InvalidRequestError, RetryableConflictError, StorageError
from lancelake.maintenance.optimize import optimize
from lancelake.storage.location import Location
from lancelake.table.config import KeyIndexSettings, from_config
from lancelake.table.index import refresh
from lancelake.table.index.refresh import merged_segments
from tests.support.sound_tables import findings

KEY = {b"lance-schema:unenforced-primary-key": b"true"}
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False, metadata=KEY), pa.field("v", pa.string())]
)
ON = {"lancelake.key_index": "true"}


def rows(ids: range, value: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)}, schema=SCHEMA)


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, tmp_table: str) -> str:
    """Return a table with an indexed primary key."""
    found = lance.write_dataset(
        rows(range(1000), "old"),
        tmp_table,
        max_rows_per_file=400,
        enable_stable_row_ids=request.param,
    )
    found.create_scalar_index("id", "BTREE")
    return tmp_table


def upsert(uri: str, ids: range, value: str) -> None:
    merge = lance.dataset(uri).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(rows(ids, value))


def covered(uri: str) -> list[set[int]]:
    found = lance.dataset(uri).describe_indices()
    return [segment.fragment_ids for index in found for segment in index.segments]


def unindexed(uri: str) -> int:
    return int(lance.dataset(uri).index_statistics("id_idx")["num_unindexed_rows"])


def by_index(uri: str, ids: list[int]) -> dict[int, str]:
    """Return the values of keys, looked up by the index only."""
    found = lance.dataset(uri).to_table(
        filter=f"id IN ({', '.join(map(str, ids))})", fast_search=True
    )
    return dict(zip(*(found[name].to_pylist() for name in ("id", "v")), strict=True))


def test_an_upsert_adds_a_segment_of_its_rows(table: str) -> None:
    lance.dataset(table).update_config(ON)
    upsert(table, range(990, 1010), "new")
    assert covered(table) == [{0, 1, 2}, {3}]
    assert by_index(table, [989, 990, 1009]) == {989: "old", 990: "new", 1009: "new"}


def test_an_append_adds_a_segment_of_its_rows(table: str) -> None:
    lance.dataset(table).update_config(ON)
    lance.write_dataset(rows(range(1000, 1005), "new"), table, mode="append")
    assert by_index(table, [1004]) == {1004: "new"}


def test_the_index_is_complete_after_many_upserts(table: str) -> None:
    lance.dataset(table).update_config({**ON, "lancelake.key_index.max_segments": "4"})
    for number in range(12):
        first = number * 75
        upsert(table, range(first, first + 150), f"{number}")
        assert unindexed(table) == 0
        assert len(covered(table)) <= 4
    expected = {key: f"{min(key // 75, 11)}" for key in range(975)}
    expected |= dict.fromkeys(range(975, 1000), "old")
    assert by_index(table, list(range(1000))) == expected
    assert lance.dataset(table).count_rows() == 1000
    assert findings(table) == []


def test_one_table_object_upserts_again_and_again(table: str) -> None:
    held = lance.dataset(table)
    held.update_config(ON)
    for number in range(5):
        merge = held.merge_insert("id")
        merge.when_matched_update_all().execute(rows(range(10), f"{number}"))
    assert unindexed(table) == 0
    assert by_index(table, list(range(10))) == dict.fromkeys(range(10), "4")


def test_rows_that_were_not_indexed_before_are_added_when_it_is_turned_on(table: str) -> None:
    upsert(table, range(1000, 1010), "new")
    assert unindexed(table) == 10
    lance.dataset(table).update_config(ON)
    assert unindexed(table) == 0


@pytest.mark.parametrize("config", [{}, {"lancelake.key_index": "false"}])
def test_the_index_is_left_alone_unless_it_is_turned_on(table: str, config: dict[str, str]) -> None:
    lance.dataset(table).update_config({"other": "key", **config})
    upsert(table, range(990, 1010), "new")
    assert covered(table) == [{0, 1, 2}]


def test_optimize_merges_the_segments_and_joins_their_fragments(table: str) -> None:
    lance.dataset(table).update_config(ON)
    for number in range(6):
        upsert(table, range(1000 + 5 * number, 1005 + 5 * number), "new")
    assert len(covered(table)) == 7
    summary = optimize(open_snapshot(Location.parse(table), Latest()))
    assert summary.indices == ("index 'id_idx': merge 7 segments",)
    assert (len(covered(table)), lance.dataset(table).stats.dataset_stats()["num_fragments"]) == (
        1,
        1,
    )
    assert unindexed(table) == 0
    assert by_index(table, [0, 1000, 1029]) == {0: "old", 1000: "new", 1029: "new"}


def test_many_unindexed_rows_are_left_to_optimize(table: str) -> None:
    lance.dataset(table).update_config({**ON, "lancelake.key_index.max_rows": "9"})
    with pytest.warns(RuntimeWarning, match="10 rows are not indexed, more than .*max_rows"):
        upsert(table, range(1000, 1010), "new")
    assert unindexed(table) == 10


def test_a_failure_leaves_the_merge_committed(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    lance.dataset(table).update_config(ON)
    monkeypatch.setattr(refresh, "refresh_indices", fail)
    with pytest.warns(RuntimeWarning, match="was committed, but .* the disk is full"):
        upsert(table, range(990, 1010), "new")
    assert lance.dataset(table).count_rows("v = 'new'") == 20


def test_a_conflict_is_no_failure(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(*_: object) -> None:
        raise RetryableConflictError("index id_idx was changed")

    lance.dataset(table).update_config(ON)
    with monkeypatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("error")
        patched.setattr(refresh, "refresh_indices", conflict)
        upsert(table, range(990, 1010), "new")
    assert unindexed(table) == 20
    upsert(table, range(5), "new")
    assert unindexed(table) == 0


def test_concurrent_upserts_leave_a_complete_index(table: str) -> None:
    lance.dataset(table).update_config(ON)

    def work(number: int) -> None:
        for step in range(3):
            upsert(table, range(200 * number + step, 200 * number + step + 5), f"{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    upsert(table, range(999, 1000), "last")
    segments = covered(table)
    assert unindexed(table) == 0
    assert sum(map(len, segments)) == len(set().union(*segments))
    assert by_index(table, [4, 204, 404, 999]) == {4: "0", 204: "1", 404: "2", 999: "last"}


def test_the_lock_of_the_commit_is_held_by_the_update_too(table: str) -> None:
    locked: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        locked.append(version)
        yield

    lance.dataset(table).update_config(ON)
    version = lance.dataset(table).version
    lance.write_dataset(rows(range(1000, 1005), "new"), table, mode="append", commit_lock=lock)
    assert locked == [version + 1, version + 2]


def test_cleanup_is_run_when_the_update_makes_the_version_at_which_it_is_due(table: str) -> None:
    at = lance.dataset(table).version
    interval = at + 3
    lance.dataset(table).update_config(
        {
            **ON,
            "lance.auto_cleanup.interval": str(interval),
            "lance.auto_cleanup.older_than": "0s",
        }
    )
    lance.write_dataset(rows(range(1000, 1005), "new"), table, mode="append")
    versions = [found["version"] for found in lance.dataset(table).versions()]
    assert versions == [at + 2, at + 3]


def test_a_table_without_a_usable_index_says_so(tmp_path: Path) -> None:
    keyless = SCHEMA.set(0, pa.field("id", pa.int64(), nullable=False))
    composite = SCHEMA.set(1, pa.field("v", pa.string(), nullable=False, metadata=KEY))
    problems = {
        "has no primary key": keyless,
        "no BTREE indexes a primary key of columns id, v": composite,
        "the primary key id has no BTREE index": SCHEMA,
    }
    for number, (problem, schema) in enumerate(problems.items()):
        table = lance.write_dataset(
            rows(range(3), "v").cast(schema), str(tmp_path / f"{number}.lance")
        )
        table.create_scalar_index("id", "BITMAP")
        with pytest.warns(RuntimeWarning, match=f"lancelake.key_index has no effect: .*{problem}"):
            table.update_config(ON)


@pytest.mark.parametrize(
    ("key", "text"),
    [("", "yes"), (".max_rows", "-1"), (".max_rows", "1e6"), (".max_segments", "0")],
)
def test_invalid_config_is_refused(key: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"lancelake.key_index{key}"):
        from_config({**ON, f"lancelake.key_index{key}": text})


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ([10**8, 1, 1], 0),
        ([10**8, 1, 1, 1], 3),
        ([10**8, 10**5, 1, 1], 2),
        ([8, 2, 1, 1], 4),
    ],
)
def test_large_segments_are_not_merged_with_a_few_rows(counts: list[int], merged: int) -> None:
    assert merged_segments(counts, 1, KeyIndexSettings(max_segments=4)) == merged
