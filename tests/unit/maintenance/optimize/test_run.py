"""Optimize runs the due maintenance, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.engine.port import Engine, Job
from lancelake.maintenance.check.run import check
from lancelake.maintenance.cleanup.plan import CleanupPolicy
from lancelake.maintenance.optimize import MaintenanceDue, OptimizeRun, OptimizeSettings, optimize
from lancelake.storage.location import Location
from lancelake.table.publish import CommitChoices

ANY_AGE = CleanupPolicy(older_than=timedelta(0), error_if_tagged_old_versions=False)
EAGER = OptimizeSettings(min_versions=0, policy=ANY_AGE)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a table of ten fragments and ten versions."""
    path = tmp_path / "table.lance"
    for number in range(10):
        lance.write_dataset(pa.table({"a": range(number * 5, number * 5 + 5)}), path, mode="append")
    return path


def head(root: Path) -> Snapshot:
    """Open the newest version."""
    return open_snapshot(Location.parse(root), Latest())


def test_small_fragments_are_compacted(root: Path) -> None:
    summary = optimize(head(root))
    assert summary.compaction is not None
    assert summary.compaction.fragments_removed == 10
    assert len(head(root).manifest.fragments) == 1


def test_rows_stay(root: Path) -> None:
    optimize(head(root), EAGER)
    assert sorted(lance.dataset(root).to_table()["a"].to_pylist()) == list(range(50))


def test_old_versions_go_and_the_table_is_in_order(root: Path) -> None:
    summary = optimize(head(root), EAGER)
    assert summary.cleanup is not None
    assert len(lance.dataset(root).versions()) == 1
    codes = [finding.code for finding in check(Location.parse(root), data=True)]
    assert codes == ["versions-removed"]


def test_young_versions_stay(root: Path) -> None:
    summary = optimize(head(root), OptimizeSettings(min_versions=0))
    assert summary.cleanup is not None
    assert summary.cleanup.versions == ()


def test_nothing_to_do_makes_no_version(root: Path) -> None:
    optimize(head(root), EAGER)
    before = head(root).version
    summary = optimize(head(root), EAGER)
    assert (summary.has_work, head(root).version) == (False, before)


def test_few_fragments_wait(root: Path) -> None:
    summary = optimize(head(root), OptimizeSettings(min_fragments_saved=10))
    assert summary.compaction is None
    assert any("fragments" in reason for reason in summary.skipped)


def test_deleted_rows_do_not_wait(root: Path) -> None:
    lance.dataset(root).delete("a % 2 = 0")
    summary = optimize(head(root), OptimizeSettings(min_fragments_saved=100))
    assert summary.compaction is not None


def test_few_versions_wait(root: Path) -> None:
    summary = optimize(head(root), OptimizeSettings(min_versions=100, policy=ANY_AGE))
    assert summary.cleanup is None
    assert len(lance.dataset(root).versions()) > 10


@pytest.mark.parametrize("off", ["compact", "cleanup"])
def test_what_is_turned_off_is_not_done(root: Path, off: str) -> None:
    lance.dataset(root).update_config({f"lancelake.optimize.{off}": "false"})
    summary = optimize(head(root))
    assert (summary.compaction is None, summary.cleanup is None) == (off == "compact", True)


def test_a_dry_run_says_it_and_changes_nothing(root: Path) -> None:
    files = {path for path in root.rglob("*") if path.is_file()}
    summary = optimize(head(root), EAGER, dry_run=True)
    assert summary.compaction is not None
    assert summary.compaction.fragments_added == 1
    assert {path for path in root.rglob("*") if path.is_file()} == files


def test_two_at_once_do_no_harm(root: Path) -> None:
    first, second = head(root), head(root)
    optimize(first)
    summary = optimize(second)
    assert (summary.compaction, summary.conflict) == (None, None)
    assert sorted(lance.dataset(root).to_table()["a"].to_pylist()) == list(range(50))


def test_another_writer_who_replaced_the_table_is_named(root: Path) -> None:
    class Overtaken:
        """Lets another writer replace the table before the first task."""

        parallelism = 1

        def run(self, job: Job) -> Iterator[bytes]:
            lance.write_dataset(pa.table({"a": [1]}), root, mode="overwrite")
            for task in job.tasks:
                yield task.run()

    summary = optimize(head(root), run=OptimizeRun(engine=Overtaken()))
    assert lance.dataset(root).to_table()["a"].to_pylist() == [1]
    assert summary.compaction is None


def test_indices_are_maintained_after_the_compaction(root: Path) -> None:
    class Maintenance:
        """Notes which version it is asked about."""

        def __init__(self) -> None:
            self.seen: list[int] = []

        def due(self, at: Snapshot) -> MaintenanceDue:
            return MaintenanceDue(works=("index i: 10 fragments",))

        def run(
            self, at: Snapshot, engine: Engine | None, choices: CommitChoices
        ) -> tuple[Snapshot, tuple[str, ...]]:
            self.seen.append(at.version)
            return at, ()

    maintenance = Maintenance()
    summary = optimize(head(root), run=OptimizeRun(index_maintenance=(maintenance,)))
    assert (summary.indices, maintenance.seen) == (
        ("index i: 10 fragments",),
        [summary.snapshot.version],
    )
