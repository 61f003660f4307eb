"""Interleavings of writers: every store call waits for a schedule."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from lancelake.errors import AlreadyExistsError, ObjectNotFoundError, StorageUnavailableError
from lancelake.storage.store import ObjectInfo, ObjectStore
from tests.support.failing_store import InterceptedStore

T = TypeVar("T")
# Calls whose outcome depends on what other writers do: all other objects never change.
RACING = frozenset({"smallest_names", "list_names", "exists", "create"})
EVERY = frozenset(
    {"get", "get_range", "get_suffix", "head", "put", "put_stream", "copy", "delete", "list"}
    | {"list_dirs", "delete_many", "swap"}
    | RACING
)


class DictStore:
    """Objects in a dict; copies are cheap."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})

    def get(self, path: str) -> bytes:
        try:
            return self.objects[path]
        except KeyError as error:
            raise ObjectNotFoundError(f"no object at {path!r}", path=path) from error

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        return self.get(path)[start : start + length]

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        data = self.get(path)
        return data[max(0, len(data) - length) :], len(data)

    def head(self, path: str) -> ObjectInfo:
        return ObjectInfo(path=path, size_bytes=len(self.get(path)), modified_ns=0)

    def exists(self, path: str) -> bool:
        return path in self.objects

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        start = f"{prefix}/" if prefix else ""
        return iter([self.head(p) for p in sorted(self.objects) if p.startswith(start)])

    def list_names(self, directory: str) -> builtins.list[str]:
        rest = [p.removeprefix(f"{directory}/") for p in self.objects if p.startswith(directory)]
        return sorted(name for name in rest if "/" not in name)

    def list_dirs(self, directory: str) -> builtins.list[str]:
        start = f"{directory}/" if directory else ""
        rest = [p.removeprefix(start) for p in self.objects if p.startswith(start)]
        return sorted({name.partition("/")[0] for name in rest if "/" in name})

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        return self.list_names(directory)[:limit]

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.objects[path] = data

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        self.objects[path] = b"".join(chunks)

    def create(self, path: str, data: bytes) -> None:
        if path in self.objects:
            raise AlreadyExistsError(f"an object is already at {path!r}", path=path)
        self.objects[path] = data

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        if self.get(path) != expected:
            return False
        self.objects[path] = data
        return True

    def copy(self, source: str, target: str) -> None:
        self.objects[target] = self.get(source)

    def delete(self, path: str) -> None:
        self.objects.pop(path, None)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)


class Fate(Enum):
    """What happens to a create."""

    DONE = "done"
    REPLY_LOST = "reply lost"
    REQUEST_LOST = "request lost"
    DELAYED = "reply lost, and done some time later"


@dataclass(slots=True)
class Schedule:
    """Choices as numbers; each is taken modulo the number of ways there are, then zeros."""

    choices: Sequence[int]
    taken: builtins.list[tuple[int, int]] = field(default_factory=list)

    def choose(self, ways: int) -> int:
        """Take the next choice among `ways`."""
        if ways == 1:
            return 0
        number = len(self.taken)
        choice = self.choices[number] % ways if number < len(self.choices) else 0
        self.taken.append((choice, ways))
        return choice

    def next_choices(self) -> builtins.list[int] | None:
        """Return the choices of the next run of an exhaustive search; None after the last."""
        taken = [*self.taken]
        while taken:
            choice, ways = taken.pop()
            if choice + 1 < ways:
                return [*(c for c, _ in taken), choice + 1]
        return None


@dataclass(slots=True)
class Outcomes(Generic[T]):
    """How each writer ended."""

    returned: dict[str, T] = field(default_factory=dict)
    raised: dict[str, Exception] = field(default_factory=dict)


class Scheduler:
    """Runs writers so that one at a time makes progress, from one store call to the next."""

    def __init__(
        self,
        schedule: Schedule,
        *,
        points: frozenset[str] = EVERY,
        losses: int = 0,
        is_new: Callable[[], bool] | None = None,
    ) -> None:
        """`is_new` tells whether a run goes on; it is asked before each choice."""
        self._schedule = schedule
        self._is_new = is_new
        self.is_abandoned = False
        self._points = points
        self._losses = losses
        self._turns: dict[str, threading.Event] = {}
        self._waiting: dict[str, str] = {}
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._quiet = threading.Event()
        self._delayed: builtins.list[Callable[[], Any]] = []

    def run(
        self, writers: dict[str, Callable[[ObjectStore], T]], store: ObjectStore
    ) -> Outcomes[T]:
        """Run all writers to their ends; return what each returned or raised."""
        outcomes: Outcomes[T] = Outcomes()
        threads = []
        for name, work in writers.items():
            self._turns[name] = threading.Event()
            view = InterceptedStore(store, _View(name, self).around)
            thread = threading.Thread(
                target=self._work, args=(name, work, view, outcomes), daemon=True
            )
            threads.append(thread)
        self._running = set(writers)
        for thread in threads:
            thread.start()
        self._conduct()
        for thread in threads:
            thread.join()
        return outcomes

    def wait_for_turn(self, name: str, call: str) -> Fate:
        """Block a writer before a call until the schedule chooses it; say what becomes of it."""
        if self.is_abandoned:
            raise _AbandonedError
        if call not in self._points:
            return Fate.DONE
        with self._lock:
            self._waiting[name] = call
            self._rest(name)
        self._turns[name].wait()
        self._turns[name].clear()
        if self.is_abandoned:
            raise _AbandonedError
        return self._fate(call)

    def _fate(self, call: str) -> Fate:
        if call != "create" or self._losses == 0:
            return Fate.DONE
        fate = tuple(Fate)[self._schedule.choose(len(Fate))]
        if fate is not Fate.DONE:
            self._losses -= 1
        return fate

    def _work(
        self,
        name: str,
        work: Callable[[ObjectStore], T],
        view: ObjectStore,
        outcomes: Outcomes[T],
    ) -> None:
        try:
            outcomes.returned[name] = work(view)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            outcomes.raised[name] = error
        except _AbandonedError:
            pass
        finally:
            with self._lock:
                self._rest(name)

    def _rest(self, name: str) -> None:
        self._running.discard(name)
        if not self._running:
            self._quiet.set()

    def delay(self, carry_out: Callable[[], Any]) -> None:
        """Let a call take effect some time later."""
        self._delayed.append(carry_out)

    def _chosen(self) -> str | None:
        """Choose the next writer, after any delayed calls; None when all is done."""
        while True:
            waiting = sorted(self._waiting)
            ways = len(waiting) + len(self._delayed)
            if ways == 0:
                return None
            if self._is_new is not None and not self._is_new():
                self._abandon()
                return None
            choice = self._schedule.choose(ways)
            if choice < len(waiting):
                return waiting[choice]
            with suppress(AlreadyExistsError):
                self._delayed.pop(choice - len(waiting))()

    def _abandon(self) -> None:
        """End all writers where they wait."""
        self.is_abandoned = True
        self._running |= set(self._waiting)
        for name in self._waiting:
            self._turns[name].set()
        self._waiting.clear()

    @property
    def pending(self) -> tuple[int, int]:
        """Number of calls that may still be lost, and of those that take effect later."""
        return self._losses, len(self._delayed)

    def _conduct(self) -> None:
        while True:
            self._quiet.wait()
            self._quiet.clear()
            chosen = self._chosen()
            if chosen is None:
                return
            del self._waiting[chosen]
            self._running.add(chosen)
            self._turns[chosen].set()


class _AbandonedError(BaseException):
    """A run is not continued; no writer handles this."""


class _View:
    """How one writer sees the store that all share."""

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        self._name = name
        self._scheduler = scheduler

    def around(self, call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        match self._scheduler.wait_for_turn(self._name, call):
            case Fate.DONE:
                return carry_out()
            case Fate.REPLY_LOST:
                with suppress(AlreadyExistsError):
                    carry_out()
                raise StorageUnavailableError(f"no reply for {path!r}")
            case Fate.REQUEST_LOST:
                raise StorageUnavailableError(f"no reply for {path!r}")
            case Fate.DELAYED:
                self._scheduler.delay(carry_out)
                raise StorageUnavailableError(f"no reply for {path!r}")
