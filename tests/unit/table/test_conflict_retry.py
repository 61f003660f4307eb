from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.clock import ManualClock, SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, InvalidRequestError, RetryableConflictError
from lancelake.table.conflict_retry import Retries, until_it_lands
from lancelake.table.publish import Surroundings


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")._snapshot


def _conflict() -> RetryableConflictError:
    return RetryableConflictError("another was faster", table="t", version=2)


def test_work_that_lands_is_done_once(base: Snapshot) -> None:
    seen = []
    until_it_lands(base, seen.append, Retries(), Surroundings())
    assert seen == [base]


def test_after_a_conflict_work_is_done_on_the_newest_version(base: Snapshot) -> None:
    versions: list[int] = []

    def work(version: Snapshot) -> str:
        versions.append(version.version)
        if len(versions) == 1:
            lance.write_dataset(pa.table({"a": [2]}), base.location.uri, mode="append")
            raise _conflict()
        return "landed"

    assert until_it_lands(base, work, Retries(), Surroundings(clock=ManualClock())) == "landed"
    assert versions == [1, 2]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_work_is_done_again_as_often_as_allowed_and_no_more(base: Snapshot, most: int) -> None:
    done: list[int] = []

    def work(version: Snapshot) -> None:
        done.append(version.version)
        raise _conflict()

    with pytest.raises(ContentionError, match="Too many concurrent writers") as found:
        until_it_lands(base, work, Retries(most=most), Surroundings(clock=ManualClock()))
    assert len(done) == most + 1
    assert found.value.facts["attempts"] == most + 1


def test_work_is_not_done_again_once_its_time_is_over(base: Snapshot) -> None:
    clock = ManualClock()

    def work(version: Snapshot) -> None:
        clock.ns += 6_000_000_000
        raise _conflict()

    with pytest.raises(ContentionError) as found:
        until_it_lands(base, work, Retries(most=100, timeout_s=10), Surroundings(clock=clock))
    assert found.value.facts["attempts"] == 2
    assert sum(clock.slept) <= 10


def test_an_error_that_no_retry_can_resolve_is_raised_at_once(base: Snapshot) -> None:
    done: list[int] = []

    def work(version: Snapshot) -> None:
        done.append(version.version)
        raise InvalidRequestError("nonsense")

    with pytest.raises(InvalidRequestError, match="nonsense"):
        until_it_lands(base, work, Retries(), Surroundings(ids=SystemIds(1)))
    assert done == [1]


@pytest.mark.parametrize("retries", [{"most": -1}, {"timeout_s": -0.1}])
def test_retries_that_cannot_be_counted_are_refused(retries: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError):
        Retries(**retries)
