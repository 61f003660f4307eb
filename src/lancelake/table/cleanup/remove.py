"""Remove many files in parallel, within a rate limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lancelake.clock import Clock, SystemClock
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import StorageError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

_TASK_BYTES = 16 << 20
_BATCH_FILES = 1_000
_LEAST_FILES = 250
_CLOCK: Clock = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles:
    """Files to remove, at most `per_second` in every second."""

    location: Location
    paths: tuple[str, ...]
    per_second: float | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Remove the files and return those that failed, as bytes that `from_bytes` reads."""
        return json.dumps(self.remove(_CLOCK)).encode()

    def remove(self, clock: Clock) -> list[str]:
        """Remove the files and return those that could not be removed."""
        failed: list[str] = []
        size = _BATCH_FILES if self.per_second is None else max(1, int(self.per_second))
        began = clock.monotonic_s()
        done = 0
        for batch in _batches(self.paths, min(size, _BATCH_FILES)):
            failed += self._batch(batch)
            done += len(batch)
            if self.per_second is not None and done < len(self.paths):
                due = began + done / self.per_second
                clock.sleep(max(0.0, due - clock.monotonic_s()))
        return failed

    def _batch(self, paths: Sequence[str]) -> list[str]:
        store = open_store(self.location)
        try:
            store.delete_many(paths)
        except StorageError:
            return [path for path in paths if not self._one(path)]
        return []

    def _one(self, path: str) -> bool:
        try:
            open_store(self.location).delete(path)
        except StorageError:
            return False
        return True


def from_bytes(results: Iterable[bytes]) -> frozenset[str]:
    """Return the files that runs of `RemoveFiles` could not remove."""
    return frozenset(path for result in results for path in json.loads(result))


def removal(
    location: Location,
    paths: Sequence[str],
    engine: Engine,
    *,
    per_second: int | None,
    progress: Progress | None,
) -> Job:
    """Return the removal of files as a job; parallel tasks share the rate limit."""
    # Chunks are small enough for workers to finish at about the same time.
    size = max(_LEAST_FILES, -(-len(paths) // (4 * engine.parallelism)))
    at_once = 1
    if per_second is not None:
        at_once = max(1, min(engine.parallelism, per_second))
        size = max(1, -(-len(paths) // at_once))
    allowed = None if per_second is None else per_second / at_once
    tasks = tuple(
        RemoveFiles(location=location, paths=tuple(part), per_second=allowed)
        for part in _batches(paths, size)
    )
    return Job(description=f"remove files of {location.uri}", tasks=tasks, progress=progress)


def _batches(paths: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (paths[start : start + size] for start in range(0, len(paths), size))
