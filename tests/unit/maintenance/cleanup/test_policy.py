"""The versions that a cleanup policy expires."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.maintenance.cleanup.plan import CleanupPolicy

DAY = 86_400 * 10**9


def test_two_weeks_when_nothing_is_said() -> None:
    assert CleanupPolicy().before_ns(20 * DAY) == 6 * DAY


@pytest.mark.parametrize(
    "policy",
    [CleanupPolicy(retain_versions=1), CleanupPolicy(versions=frozenset({1}))],
    ids=["retain_versions", "versions"],
)
def test_any_age_when_numbers_are_given(policy: CleanupPolicy) -> None:
    assert policy.before_ns(20 * DAY) is None


def test_an_age_of_zero_is_an_age() -> None:
    assert CleanupPolicy(older_than=timedelta(0)).before_ns(20 * DAY) == 20 * DAY


def test_an_age_beyond_the_calendar_keeps_everything() -> None:
    before = CleanupPolicy(older_than=timedelta.max).before_ns(20 * DAY)
    assert before is not None
    assert before < 0


@pytest.mark.parametrize("name", ["retain_versions", "delete_rate_limit"])
def test_zero_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} must be greater than 0, got 0"):
        CleanupPolicy(**{name: 0})  # type: ignore[arg-type]  # by name


def test_no_versions_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="must not be empty"):
        CleanupPolicy(versions=frozenset())
