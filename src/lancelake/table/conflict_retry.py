"""Retry work that was invalidated by another writer's commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from lancelake.commit.backoff import redo_delay_s
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, InvalidRequestError, RetryableConflictError
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import CommitChoices, Surroundings

DEFAULT_RETRIES = 10
DEFAULT_TIMEOUT_S = 30.0
_MOST_RACES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Limits of retries: their number, their total time, and the longest delay between them."""

    most: int = DEFAULT_RETRIES
    timeout_s: float = DEFAULT_TIMEOUT_S
    longest_wait_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse negative limits."""
        if self.most < 0 or self.timeout_s < 0:
            raise InvalidRequestError("retries and their timeout must not be negative")


DEFAULT = Retries()

Result = TypeVar("Result")


def until_it_lands(
    base: Snapshot,
    work: Callable[[Snapshot], Result],
    retries: Retries,
    surroundings: Surroundings,
) -> Result:
    """Run work on a version; after a conflict retry it on the newest, within the limits."""
    clock, ids = surroundings.clock, surroundings.ids
    started_s = clock.monotonic_s()
    for attempt in range(retries.most + 1):
        begun_s = clock.monotonic_s()
        try:
            return work(base)
        except RetryableConflictError as conflict:
            spent_s = clock.monotonic_s() - started_s
            if attempt == retries.most or spent_s >= retries.timeout_s:
                raise _given_up(base, attempt + 1, spent_s) from conflict
        attempt_s = clock.monotonic_s() - begun_s
        most_s = min(retries.longest_wait_s, retries.timeout_s - spent_s)
        clock.sleep(redo_delay_s(attempt_s, ids.random(), most_s=most_s))
        base = open_snapshot(base.location, Latest(), main=base.main_location)
    raise AssertionError


def racing(choices: CommitChoices, retries: Retries) -> CommitChoices:
    """Return choices that keep retrying the commit of finished work while there is time.

    Retrying a commit is cheap compared with repeating the work.
    """
    return replace(choices, max_retries=_MOST_RACES, timeout_s=retries.timeout_s)


def _given_up(base: Snapshot, attempts: int, spent_s: float) -> ContentionError:
    problem = (
        f"Too many concurrent writers: the work was attempted {attempts} times in "
        f"{spent_s:.1f} s, and each time conflicted with another commit"
    )
    return ContentionError(problem, table=base.location.uri, attempts=attempts)
