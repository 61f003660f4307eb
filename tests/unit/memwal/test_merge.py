from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import SchemaMismatchError
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.memwal.details import Unsharded
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import details_of
from lancelake.memwal.setup import initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.view import Freshness, open_view
from lancelake.table import publish as publishing
from tests.support.memwal_tables import (
    BUCKET,
    REGION,
    SCHEMA,
    SIMPLE,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return new_table(tmp_path / "t", (1, "base"), (2, "base"))


def _two_generations(base: Snapshot) -> None:
    with writer(base) as mine:
        mine.put(rows((1, "first"), (3, "first")))
        mine.delete(keys(2))
        mine.flush()
        mine.put(rows((3, "second"), (2, "second")))
        mine.delete(keys(1, 99))


def test_generations_are_merged_in_one_commit(base: Snapshot) -> None:
    _two_generations(base)
    made = merge_generations(base)
    assert made.marks == (MergedGeneration(region_id=REGION, generation=2),)
    assert made.snapshot.version == base.version + 1
    assert (made.counts.inserted, made.counts.updated, made.counts.deleted) == (1, 1, 1)
    for freshness in Freshness:
        assert seen(made.snapshot, freshness) == {2: "second", 3: "second"}


def test_merged_generations_are_not_merged_again(base: Snapshot) -> None:
    _two_generations(base)
    made = merge_generations(base)
    lance.dataset(base.location.uri).update({"name": "'direct'"})
    again = merge_generations(made.snapshot)
    assert (again.marks, again.snapshot.version) == ((), made.snapshot.version)
    assert seen(newest(base.location.uri)) == {2: "direct", 3: "direct"}


def test_a_merge_of_an_old_version_starts_after_what_is_merged_now(base: Snapshot) -> None:
    _two_generations(base)
    merge_generations(base)
    late = merge_generations(base)
    assert (late.marks, seen(late.snapshot)) == ((), {2: "second", 3: "second"})


def test_generations_without_live_rows_are_merged(base: Snapshot) -> None:
    with writer(base) as mine:
        mine.delete(keys(50))
    made = merge_generations(base)
    assert details_of(made.snapshot).progress() == {REGION: 1}
    assert seen(made.snapshot, Freshness.BASE) == {1: "base", 2: "base"}


def test_another_merge_in_between_leaves_the_rest(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(base) as mine:
        mine.put(rows((1, "first")))
    publish = publishing.publish

    def late(*arguments: object) -> Snapshot:
        monkeypatch.setattr(publishing, "publish", publish)
        merge_generations(base)
        with writer(base) as mine:
            mine.put(rows((1, "second")))
        return publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(publishing, "publish", late)
    made = merge_generations(base)
    assert made.marks == (MergedGeneration(region_id=REGION, generation=2),)
    assert seen(made.snapshot, Freshness.BASE) == {1: "second", 2: "base"}


def test_rows_of_the_wal_are_not_merged(base: Snapshot) -> None:
    mine = writer(base)
    mine.put(rows((3, "tail")))
    made = merge_generations(base)
    assert (made.marks, seen(made.snapshot, Freshness.BASE)) == ((), {1: "base", 2: "base"})


def test_generations_of_the_official_release_are_merged(tmp_path: Path) -> None:
    table = Path(shutil.copytree(SIMPLE, tmp_path / "t"))
    made = merge_generations(newest(table))
    assert details_of(made.snapshot).progress() == {BUCKET: 2}
    assert seen(made.snapshot, Freshness.BASE)[6] == "third"
    assert seen(made.snapshot) == {1: "tail", 3: "base", 4: "second", 5: "second", 7: "tail"}


def test_rows_of_columns_without_nulls_are_deleted_and_replaced(tmp_path: Path) -> None:
    schema = pa.schema([SCHEMA.field("id"), pa.field("odd `name`", pa.utf8(), nullable=False)])
    table = pa.table([[1, 2], ["base", "base"]], schema=schema)
    lance.write_dataset(table, tmp_path / "t")
    base = initialize(newest(tmp_path / "t"), Unsharded())
    with TableWriter(base) as mine:
        mine.put(pa.table([[2, 3], ["new", "new"]], schema=schema))
        mine.delete(keys(1))
        with pytest.raises(SchemaMismatchError, match="odd"):
            mine.put(pa.table({"id": [4], "odd `name`": pa.nulls(1, pa.utf8())}))
    merge_generations(base)
    found = lance.dataset(tmp_path / "t").to_table().to_pydict()
    assert found == {"id": [2, 3], "odd `name`": ["new", "new"]}


def test_nested_columns_are_merged(tmp_path: Path) -> None:
    kinds = {"l": pa.list_(pa.int32()), "s": pa.struct([("a", pa.int64()), ("b", pa.utf8())])}
    schema = pa.schema([SCHEMA.field("id"), *(pa.field(n, k) for n, k in kinds.items())])
    rows_of = [{"id": 1, "l": [1, None], "s": {"a": 1, "b": None}}, {"id": 2, "l": None, "s": None}]
    lance.write_dataset(pa.Table.from_pylist(rows_of[:1], schema), tmp_path / "t")
    base = initialize(newest(tmp_path / "t"), Unsharded())
    changed = [{"id": 1, "l": [], "s": {"a": None, "b": "x"}}, rows_of[1]]
    with TableWriter(base) as mine:
        mine.put(pa.Table.from_pylist(changed, schema))
        assert open_view(base, Freshness.DURABLE).to_table().to_pylist() == changed
    assert open_view(base, Freshness.FLUSHED).to_table().to_pylist() == changed
    made = merge_generations(base).snapshot
    assert open_view(made, Freshness.BASE).to_table().sort_by("id").to_pylist() == changed


def test_indices_that_cover_what_is_merged_are_recorded(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    base = new_table(uri, (1, "base"))
    lance.dataset(uri).create_scalar_index("name", "BTREE")
    assert details_of(newest(uri)).index_catchup == ()
    with writer(base) as mine:
        mine.put(rows((2, "new")))
    merge_generations(newest(uri))
    assert details_of(newest(uri)).index_catchup == ()
    lance.dataset(uri).optimize.optimize_indices()
    (caught_up,) = details_of(newest(uri)).index_catchup
    assert caught_up.index_name == "name_idx"
    assert [(m.region_id, m.generation) for m in caught_up.generations] == [(REGION, 1)]


def test_a_dropped_index_is_not_recorded(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    base = new_table(uri, (1, "base"))
    with writer(base) as mine:
        mine.put(rows((2, "new")))
    merge_generations(newest(uri))
    lance.dataset(uri).create_scalar_index("name", "BTREE")
    assert [c.index_name for c in details_of(newest(uri)).index_catchup] == ["name_idx"]
    lance.dataset(uri).drop_index("name_idx")
    assert details_of(newest(uri)).index_catchup == ()
