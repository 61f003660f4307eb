"""Log records of operations on tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import CommitMetrics
from lancelake.table.publish import CommitChoices, Committed
from lancelake.table.rows import delete

ROWS = pa.table({"id": [1, 2, 3]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))


@pytest.fixture
def ds(tmp_path: Path) -> lancelake.LanceDataset:
    return lancelake.write_dataset(ROWS, tmp_path / "t.lance")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Record what is logged after the table was made."""
    with caplog.at_level(logging.INFO, "lancelake"):
        yield caplog


def _of(logged: pytest.LogCaptureFixture, kind: str) -> list[dict[str, Any]]:
    return [vars(record) for record in logged.records if record.name == f"lancelake.{kind}"]


def test_each_commit_is_one_record(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    ds.insert(ROWS)
    ds.delete("id = 1")
    append, deletion = logged.records
    assert append.getMessage().startswith(
        f"committed WRITE as version 2 of {ds.uri}: 3 rows inserted, 1 file added, "
    )
    size = sum(file.stat().st_size for file in Path(ds.uri, "data").iterdir()) // 2
    facts = {"rows_inserted": 3, "files_added": 1, "bytes_added": size, "attempts": 1}
    assert facts.items() <= vars(append).items()
    facts = {"table": ds.uri, "version": 3, "operation": "DELETE", "rows_deleted": 2}
    assert facts.items() <= vars(deletion).items()


def test_a_call_that_commits_nothing_is_not_logged(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(lancelake.LanceTableError):
        ds.delete("no_such_column = 1")
    ds.optimize.compact_files()
    ds.optimize.optimize_indices()
    assert logged.records == []


def test_a_detached_commit_is_logged(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    made = delete(ds._snapshot, "id = 1", choices=CommitChoices(is_detached=True))
    assert [vars(record)["version"] for record in logged.records] == [made.snapshot.version]


def test_a_compaction_is_logged(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    ds.insert(ROWS)
    done = ds.optimize.compact_files()
    (record,) = _of(logged, "compaction")
    facts = {"table": ds.uri, "version": ds.version, "operation": "OPTIMIZE"}
    assert (facts | {"fragments_removed": done.fragments_removed}).items() <= record.items()
    assert done.fragments_removed == 2


def test_a_cleanup_is_logged(ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture) -> None:
    ds.insert(ROWS, mode="overwrite")
    done = ds.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    (record,) = _of(logged, "cleanup")
    facts = {"table": ds.uri, "versions_removed": 1, "bytes_removed": done.bytes_removed}
    assert (facts | {"operation": "CLEAN UP", "files_failed": 0}).items() <= record.items()


def test_builds_and_refreshes_of_indices_are_logged(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    ds.create_scalar_index("id", "BTREE", name="by_id")
    ds.insert(ROWS)
    ds.optimize.optimize_indices()
    built, refreshed = _of(logged, "index")
    facts = {"table": ds.uri, "version": 2, "operation": "CREATE INDEX", "index": "by_id"}
    assert (facts | {"rows_covered": 3}).items() <= built.items()
    facts = {"version": 4, "operation": "OPTIMIZE INDEX", "index": "by_id", "rows_covered": 6}
    assert facts.items() <= refreshed.items()
    assert min(built["files_added"], built["bytes_added"]) > 0


def test_a_merge_of_the_memwal_is_logged(
    ds: lancelake.LanceDataset, logged: pytest.LogCaptureFixture
) -> None:
    ds.wal.initialize(key="id", buckets=1)
    ds.wal.merge()
    with ds.wal.writer() as writer:
        writer.delete([3])
    ds.wal.merge()
    (record,) = _of(logged, "memwal")
    facts = {"table": ds.uri, "version": ds.version, "operation": "MERGE", "regions": 1}
    assert (facts | {"rows_deleted": 1, "rows_inserted": 0}).items() <= record.items()


def test_plans_of_reads_are_debug_records(
    ds: lancelake.LanceDataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "lancelake.scan"):
        ds.to_table(filter="id > 2")
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("lancelake.scan", "DEBUG")
    assert "Filter: id > 2" in record.getMessage()
    assert {"table": ds.uri, "version": 1}.items() <= vars(record).items()


def test_steps_after_a_commit_get_what_it_took(ds: lancelake.LanceDataset) -> None:
    seen: list[CommitMetrics | None] = []

    def note(committed: Committed) -> None:
        seen.append(committed.snapshot.commit)

    made = delete(ds._snapshot, "id = 1", choices=CommitChoices(after=(note,)))
    assert seen == [made.snapshot.commit]
    assert made.snapshot.commit is not None


def test_a_table_knows_what_its_last_commit_took(ds: lancelake.LanceDataset) -> None:
    other = lancelake.dataset(ds.uri)
    assert other.last_commit is None
    ds.update_config({"a": "1"})
    other.update_config({"b": "2"})
    took = other.last_commit
    assert took is not None
    assert (took.attempts, took.concurrent_commits, took.lost_replies) == (1, 1, 0)
    assert took.manifest_bytes == other._snapshot.manifest_size
    assert other._snapshot == lancelake.dataset(ds.uri)._snapshot
