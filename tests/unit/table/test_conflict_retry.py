from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, InvalidRequestError, RetryableConflictError
from lancelake.storage.location import Session
from lancelake.table.publish import Retries, retry_on_newest
from tests.support.set_clock import ManualClock


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")._snapshot


def at(base: Snapshot, clock: ManualClock) -> Snapshot:
    """Return the version in a session with a clock."""
    return replace(base, location=replace(base.location, session=Session(clock=clock)))


def _conflict() -> RetryableConflictError:
    return RetryableConflictError("another was faster", table="t", version=2)


def test_work_that_lands_is_done_once(base: Snapshot) -> None:
    seen = []
    retry_on_newest(base, seen.append, Retries())
    assert seen == [base]


def test_after_a_conflict_work_is_done_on_the_newest_version(
    base: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    versions: list[int] = []

    def work(version: Snapshot) -> str:
        versions.append(version.version)
        if len(versions) == 1:
            lance.write_dataset(pa.table({"a": [2]}), base.location.uri, mode="append")
            raise _conflict()
        return "landed"

    assert retry_on_newest(at(base, ManualClock()), work, Retries()) == "landed"
    assert versions == [1, 2]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("lancelake.commit", "WARNING")
    assert "another was faster" in record.getMessage()
    assert vars(record)["table"] == base.location.uri


def test_the_files_of_an_upsert_are_synced_in_parallel_before_its_version(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, versions = threading.Barrier(4), list[bool]()

    def sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.parent.name in ("data", "_deletions") or path.name in ("data", "_deletions"):
            together.wait(60)
            versions.append(len(lance.dataset(base.location.uri).versions()) > 2)

    two = lance.write_dataset(pa.table({"a": [2, 3]}), base.location.uri, mode="overwrite")
    (Path(base.location.uri) / "_deletions").mkdir()
    merge = two.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    monkeypatch.setattr(os, "fsync", sync)
    merge.execute(pa.table({"a": [3, 4]}))
    assert versions == [False] * 4


@pytest.mark.parametrize("most", [0, 1, 3])
def test_work_is_done_again_as_often_as_allowed_and_no_more(base: Snapshot, most: int) -> None:
    done: list[int] = []

    def work(version: Snapshot) -> None:
        done.append(version.version)
        raise _conflict()

    with pytest.raises(ContentionError, match="Too many concurrent writers") as found:
        retry_on_newest(at(base, ManualClock()), work, Retries(most=most))
    assert len(done) == most + 1
    assert found.value.facts["attempts"] == most + 1


def test_work_is_not_done_again_once_its_time_is_over(base: Snapshot) -> None:
    clock = ManualClock()

    def work(version: Snapshot) -> None:
        clock.ns += 6_000_000_000
        raise _conflict()

    with pytest.raises(ContentionError) as found:
        retry_on_newest(at(base, clock), work, Retries(most=100, timeout_s=10))
    assert found.value.facts["attempts"] == 2
    assert sum(clock.slept) <= 10


def test_an_error_that_no_retry_can_resolve_is_raised_at_once(base: Snapshot) -> None:
    done: list[int] = []

    def work(version: Snapshot) -> None:
        done.append(version.version)
        raise InvalidRequestError("nonsense")

    with pytest.raises(InvalidRequestError, match="nonsense"):
        retry_on_newest(base, work, Retries())
    assert done == [1]


@pytest.mark.parametrize("retries", [{"most": -1}, {"timeout_s": -0.1}])
def test_retries_that_cannot_be_counted_are_refused(retries: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError):
        Retries(**retries)
