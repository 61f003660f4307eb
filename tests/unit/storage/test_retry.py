"""Retries: only of idempotent calls, and as often as the policy allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.clock import SystemIds
from lancelake.errors import (
    LanceTableError,
    ObjectNotFoundError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
)
from lancelake.storage.location import Location
from lancelake.storage.options import RetryingStore, RetryPolicy
from lancelake.storage.store import ObjectInfo, ObjectStore
from tests.support.set_clock import ManualClock

POLICY = RetryPolicy(max_retries=3, timeout_s=60, first_delay_s=1, max_delay_s=3)


class Failing:
    """A store that fails its first calls."""

    def __init__(self, *failures: LanceTableError) -> None:
        self.failures = list(failures)
        self.calls = 0

    def get(self, path: str) -> bytes:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return b"bytes"

    def create(self, path: str, data: bytes) -> None:
        self.get(path)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self.calls += 1
        for name in "abcd":
            if name == "c" and self.failures:
                raise self.failures.pop(0)
            yield ObjectInfo(path=name, size_bytes=0, modified_ns=0)


def retrying(
    inner: Failing, clock: ManualClock, *, policy: RetryPolicy = POLICY, lists_in_order: bool = True
) -> ObjectStore:
    return RetryingStore(
        inner,  # type: ignore[arg-type]  # only what the test calls
        policy=policy,
        clock=clock,
        ids=SystemIds(7),
        lists_in_order=lists_in_order,
    )


def down() -> StorageUnavailableError:
    return StorageUnavailableError("down")


def test_call_succeeds_after_failures(caplog: pytest.LogCaptureFixture) -> None:
    inner = Failing(down(), down(), down())
    assert retrying(inner, ManualClock()).get("a") == b"bytes"
    warnings = [(record.name, vars(record)["reason"]) for record in caplog.records]
    assert warnings == [("lancelake.storage", "down")] * 3


def test_call_is_given_up_after_the_last_retry() -> None:
    inner = Failing(*(down() for _ in range(9)))
    with pytest.raises(StorageUnavailableError):
        retrying(inner, ManualClock()).get("a")
    assert inner.calls == 4


def test_call_is_given_up_when_time_is_over() -> None:
    inner = Failing(*(down() for _ in range(9)))
    policy = RetryPolicy(max_retries=100, timeout_s=10, first_delay_s=4, max_delay_s=4)
    clock = ManualClock()
    with pytest.raises(StorageUnavailableError):
        retrying(inner, clock, policy=policy).get("a")
    assert sum(clock.slept) <= 10
    assert inner.calls < 7


def test_waits_grow_up_to_the_longest() -> None:
    inner = Failing(down(), down(), down())
    clock = ManualClock()
    retrying(inner, clock).get("a")
    assert [
        low <= slept <= high
        for slept, (low, high) in zip(clock.slept, [(0.5, 1), (1, 2), (1.5, 3)], strict=True)
    ] == [True, True, True]


@pytest.mark.parametrize("kind", [ObjectNotFoundError, StorageDeniedError, StorageError])
def test_other_failures_are_not_tried_again(kind: type[LanceTableError]) -> None:
    inner = Failing(kind("no"))
    with pytest.raises(kind):
        retrying(inner, ManualClock()).get("a")
    assert inner.calls == 1


def test_create_is_tried_once() -> None:
    inner = Failing(down())
    with pytest.raises(StorageUnavailableError):
        retrying(inner, ManualClock()).create("a", b"")
    assert inner.calls == 1


def test_broken_list_continues_without_repeating() -> None:
    store = retrying(Failing(down(), down()), ManualClock())
    assert [info.path for info in store.list()] == ["a", "b", "c", "d"]


def test_broken_list_without_order_is_an_error() -> None:
    store = retrying(Failing(down()), ManualClock(), lists_in_order=False)
    with pytest.raises(StorageUnavailableError):
        list(store.list())


def test_stream_is_read_again_on_a_retry() -> None:
    memory = Location.parse("memory://retry/stream").store

    class OnceBroken:
        failures = 1

        def put_stream(self, path: str, chunks: Iterator[bytes]) -> None:
            data = b"".join(chunks)
            if self.failures:
                self.failures -= 1
                raise down()
            memory.put(path, data)

    retrying(OnceBroken(), ManualClock()).put_stream("a", [b"1", b"2"])  # type: ignore[arg-type]
    assert memory.get("a") == b"12"


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_delay_stays_within_bounds(attempt: int, chance: float) -> None:
    assert 0 < POLICY.delay_s(attempt, chance) <= POLICY.max_delay_s
