"""Compaction changes only the location of rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Job, LocalEngine
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.fragment import FileVersion
from lancelake.format.operations import ReserveFragments, Rewrite
from lancelake.maintenance.check.run import check
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import plan
from lancelake.maintenance.compact.run import CompactionRun, compact
from lancelake.scan.request import Ordering

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
THIRDS = CompactionSettings(target_rows_per_fragment=20)


def contents(snapshot: Snapshot, *extra: str) -> pa.Table:
    found = lance.dataset(snapshot.location.uri, version=snapshot.version)
    return found.to_table(columns=[*found.schema.names, *extra]).sort_by("id")


def sizes(snapshot: Snapshot) -> list[int]:
    return [fragment.physical_rows or 0 for fragment in snapshot.manifest.fragments]


def test_rows_are_the_same_in_fuller_fragments(base: Snapshot) -> None:
    done = compact(base, THIRDS)
    assert contents(done.snapshot) == contents(base)
    assert sizes(done.snapshot) == [27, 30]
    assert list(check(base.location, data=True, versions="all")) == []


def test_deletion_files_are_gone(base: Snapshot) -> None:
    done = compact(base, THIRDS)
    assert all(f.deletion_file is None for f in done.snapshot.manifest.fragments)


def test_ids_and_versions_of_rows_are_kept(base: Snapshot) -> None:
    lance.dataset(base.location.uri).update({"name": "'new'"}, where="id % 7 = 0")
    base = lance.dataset(base.location.uri)._snapshot
    done = compact(base, THIRDS)
    kept = LINEAGE if base.manifest.has_stable_row_ids else LINEAGE[1:]
    assert contents(done.snapshot, *kept) == contents(base, *kept)


def test_rows_keep_their_order_and_come_after_those_that_stay(base: Snapshot) -> None:
    options = replace(THIRDS, excluded_fragment_ids=frozenset({base.manifest.fragments[3].id}))
    done = compact(base, options)
    ids = lance.dataset(base.location.uri).to_table()["id"].to_pylist()
    assert ids == [*range(30, 40), *(i for i in range(30) if i not in (3, 4, 25)), *range(40, 60)]
    assert sizes(done.snapshot) == [10, 27, 20]


def test_ids_are_reserved_and_the_planned_version_is_named(base: Snapshot) -> None:
    done = compact(base, THIRDS)
    rewrite = done.snapshot.transaction
    reserve = lance.dataset(base.location.uri, version=base.version + 1)._snapshot.transaction
    assert rewrite is not None
    assert reserve is not None
    assert (type(reserve.operation), type(rewrite.operation)) == (ReserveFragments, Rewrite)
    assert rewrite.read_version == base.version
    assert done.snapshot.version == base.version + 2


def test_nothing_to_do_makes_no_version(base: Snapshot) -> None:
    once = compact(base, THIRDS).snapshot
    again = compact(once, THIRDS)
    assert again.snapshot is once
    assert again.metrics.fragments_removed == 0


def test_metrics_count_fragments_and_files(base: Snapshot) -> None:
    metrics = compact(base, CompactionSettings()).metrics
    assert (metrics.fragments_removed, metrics.fragments_added) == (6, 1)
    assert (metrics.files_removed, metrics.files_added) == (8, 1)
    assert metrics.bytes_removed > metrics.bytes_added > 0


def test_columns_of_several_files_come_into_one(base: Snapshot) -> None:
    dataset = lance.dataset(base.location.uri)
    dataset.add_columns({"double": "id * 2"})
    dataset.add_columns(pa.field("empty", pa.int32()))
    dataset.drop_columns(["name"])
    done = compact(dataset._snapshot)
    assert contents(done.snapshot) == contents(dataset._snapshot)
    assert [len(f.files) for f in done.snapshot.manifest.fragments] == [1]
    assert done.snapshot.manifest.fragments[0].files[0].fields == (0, 2, 3)


def test_groups_can_be_committed_one_by_one(base: Snapshot) -> None:
    done = compact(base, THIRDS, CompactionRun(groups_per_commit=1))
    assert done.snapshot.version == base.version + 4
    assert contents(done.snapshot) == contents(base)


def test_groups_that_are_done_stay_when_a_later_one_fails(base: Snapshot) -> None:
    class FailsAtSecond(LocalEngine):
        def run(self, job: Any) -> Any:
            results = super().run(job)
            yield next(results)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact(base, THIRDS, CompactionRun(engine=FailsAtSecond(), groups_per_commit=1))
    half = lance.dataset(base.location.uri)._snapshot
    assert sizes(half) == [10, 10, 10, 27]
    done = compact(half, THIRDS)
    assert sizes(done.snapshot) == [27, 30]
    assert contents(done.snapshot) == contents(base)


@dataclass
class Disturbed:
    """Lets somebody else change the table once a number of tasks have run."""

    left: int
    change: Callable[[], object]
    parallelism: int = 1

    def run(self, job: Job) -> Iterator[bytes]:
        for result in LocalEngine(parallelism=1).run(job):
            self.left -= 1
            if self.left == 0:
                self.change()
            yield result


ORDERS = {
    "plain": THIRDS,
    "sorted": replace(THIRDS, sort_by=(Ordering(column="id"),)),
    "along a curve": replace(THIRDS, z_order_by=("id", "name")),
}


@pytest.mark.parametrize("order", sorted(ORDERS))
@pytest.mark.parametrize("together", [True, False], ids=["at once", "one by one"])
def test_a_row_deleted_while_tasks_run_does_not_return(
    order: str, together: bool, base: Snapshot
) -> None:
    engine = Disturbed(1, lambda: lance.dataset(base.location.uri).delete("id IN (7, 45)"))
    run = CompactionRun(engine=engine, groups_per_commit=None if together else 1)
    done = compact(base, ORDERS[order], run)
    ids = contents(done.snapshot)["id"].to_pylist()
    assert ids == [i for i in range(60) if i not in (3, 4, 25, 7, 45)]
    assert list(check(base.location, data=True)) == []


def test_only_what_others_changed_is_written_again(base: Snapshot) -> None:
    data = Path(base.location.uri, "data")
    before = len(list(data.iterdir()))
    engine = Disturbed(2, lambda: lance.dataset(base.location.uri).delete("id = 45"))
    done = compact(base, THIRDS, CompactionRun(engine=engine))
    assert done.metrics.fragments_removed == 6
    assert len(list(data.iterdir())) - before == 2 + 1


def test_rows_can_be_sorted(base: Snapshot) -> None:
    options = CompactionSettings(
        target_rows_per_fragment=20, sort_by=(Ordering(column="id", ascending=False),)
    )
    done = compact(base, options)
    kept = LINEAGE if base.manifest.has_stable_row_ids else []
    assert contents(done.snapshot, *kept) == contents(base, *kept)
    ids = lance.dataset(base.location.uri).to_table()["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)
    assert sizes(done.snapshot) == [29, 28]


def test_a_column_to_sort_by_must_exist(base: Snapshot) -> None:
    with pytest.raises(InvalidRequestError, match="nowhere"):
        plan(base, CompactionSettings(sort_by=(Ordering(column="nowhere"),)))


def test_files_stay_below_the_bytes_asked_for(base: Snapshot) -> None:
    total = sum(f.files[0].file_size_bytes or 0 for f in base.manifest.fragments)
    done = compact(base, CompactionSettings(target_bytes_per_fragment=total // 2))
    assert len(done.snapshot.manifest.fragments) == 2


def test_what_was_added_is_compacted_without_what_was_settled(base: Snapshot) -> None:
    settled = compact(base, THIRDS).snapshot
    for number in range(3):
        lance.write_dataset(
            pa.table({"id": [100 + number], "name": ["x"]}), base.location.uri, mode="append"
        )
    head = lance.dataset(base.location.uri)._snapshot
    done = compact(head, THIRDS)
    before = [f.id for f in settled.manifest.fragments]
    assert [f.id for f in done.snapshot.manifest.fragments][:2] == before
    assert done.metrics.fragments_removed == 3


def test_files_of_another_format_are_refused(base: Snapshot) -> None:
    with pytest.raises(UnsupportedError, match=FileVersion.V2_1.value):
        plan(base, CompactionSettings(data_storage_version="2.2"))


def test_a_branch_is_compacted_on_its_own(base: Snapshot) -> None:
    main = lance.dataset(base.location.uri)
    branch = main.create_branch("side")
    before = branch.to_table().sort_by("id")
    branch.optimize.compact_files()
    found = main.checkout_version(("side", None))
    assert found.to_table().sort_by("id") == before
    assert len(found.get_fragments()) == 1
    assert len(lance.dataset(base.location.uri).get_fragments()) == 6


@pytest.mark.parametrize("mode", ["reencode", "try_binary_copy"])
def test_a_clone_gets_files_of_its_own(mode: str, base: Snapshot, tmp_path: Path) -> None:
    source = lance.dataset(base.location.uri, version=base.version - 1)
    clone = source.shallow_clone(tmp_path / "clone.lance", source.version)
    clone.optimize.compact_files(compaction_mode=mode)  # type: ignore[arg-type]  # by name
    shutil.rmtree(tmp_path / "t.lance" / "data")
    found = lance.dataset(tmp_path / "clone.lance")
    assert found.to_table()["id"].to_pylist() == list(range(60))


@pytest.mark.parametrize("mode", ["reencode", "force_binary_copy"])
def test_a_table_in_another_store_is_compacted(mode: str) -> None:
    uri = f"shared-memory://compaction-{mode}"
    for number in range(3):
        lance.write_dataset(pa.table({"id": [number]}), uri, mode="append" if number else "create")
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files(compaction_mode=mode)  # type: ignore[arg-type]  # by name
    assert dataset.to_table()["id"].to_pylist() == [0, 1, 2]
    assert len(dataset.get_fragments()) == 1
