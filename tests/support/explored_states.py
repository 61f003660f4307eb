"""Exhaustive search of interleavings in which each state is continued once.

A writer is determined by what it has read: two runs in which the store is the same, and each writer
has seen the same answers, continue alike. Orders of calls that do not affect each other lead to the
same state, so that far fewer runs are needed than there are orders.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from lancelake.errors import LanceTableError
from lancelake.storage.store import ObjectInfo, ObjectStore
from tests.support.failing_store import InterceptedStore
from tests.support.scheduled_store import DictStore, Outcomes, Schedule, Scheduler

Works = dict[str, Callable[[ObjectStore], None]]


class Explorer:
    """Runs every order of a race, as far as it leads to a state that no other run has reached."""

    def __init__(self, *, points: frozenset[str], losses: int = 0, limit: int = 0) -> None:
        """With a limit, only so many runs are made."""
        self._points = points
        self._losses = losses
        self._limit = limit
        self._first: dict[bytes, tuple[int, ...]] = {}
        self.runs = 0

    @property
    def states(self) -> int:
        """Number of states that were reached."""
        return len(self._first)

    def schedules(self) -> Iterator[Schedule]:
        """Yield the schedule of each run, which `run` must carry out."""
        choices: list[int] | None = []
        while choices is not None and not (self._limit and self.runs >= self._limit):
            self.runs += 1
            schedule = Schedule(choices)
            yield schedule
            choices = schedule.next_choices()

    def run(
        self,
        schedule: Schedule,
        works: Works,
        store: DictStore,
        also: Callable[[], object],
    ) -> Outcomes[None] | None:
        """Run writers; None if the run reached a known state. `also` is state beside the store."""
        logs: dict[str, Any] = {name: hashlib.sha256() for name in works}

        def is_new() -> bool:
            histories = sorted((name, log.digest()) for name, log in logs.items())
            state = (sorted(store.objects.items()), histories, scheduler.pending, also())
            key = hashlib.sha256(pickle.dumps(state)).digest()
            before = tuple(choice for choice, _ in schedule.taken)
            return self._first.setdefault(key, before) == before

        scheduler = Scheduler(schedule, points=self._points, losses=self._losses, is_new=is_new)
        logged = {name: _logged(work, logs[name]) for name, work in works.items()}
        outcomes: Outcomes[None] = scheduler.run(logged, store)
        return None if scheduler.is_abandoned else outcomes


def _logged(work: Callable[[ObjectStore], None], log: Any) -> Callable[[ObjectStore], None]:
    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        try:
            found = carry_out()
        except LanceTableError as error:
            log.update(pickle.dumps((call, path, error.code)))
            raise
        answer = [*found] if call == "list" else found
        log.update(pickle.dumps((call, path, _without_time(answer))))
        return iter(answer) if call == "list" else found

    return lambda store: work(InterceptedStore(store, around))


def _without_time(answer: object) -> object:
    match answer:
        case ObjectInfo():
            return answer.path, answer.size_bytes
        case list():
            return [_without_time(each) for each in answer]
        case _:
            return answer
