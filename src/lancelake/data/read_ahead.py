"""Prefetch of a stream on another thread, so that reading and writing overlap."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

_HELD = 2
_POLL_S = 0.05
# Starting a thread takes longer than reading them.
_FEW_ROWS = 1 << 10

Item = TypeVar("Item")


def read_ahead(
    items: Iterator[Item], *, held: int = _HELD, rows: int | None = None
) -> Generator[Item, None, None]:
    """Yield the same items; prefetch up to `held` of them, unless they are only a few rows.

    Closing the generator stops the prefetch.
    """
    if rows is not None and rows <= _FEW_ROWS:
        yield from items
        return
    reader = _Reader(items, held)
    try:
        yield from reader.items()
    finally:
        reader.stop()


class _End:
    """End of the items, with the error if there was one."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Reader(Generic[Item]):
    def __init__(self, items: Iterator[Item], held: int) -> None:
        self._items = items
        self._queue: queue.Queue[Item | _End] = queue.Queue(held)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
        self._thread.start()

    def items(self) -> Iterator[Item]:
        while not isinstance(item := self._queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    return
            self._put(_End())
        except BaseException as error:  # noqa: BLE001  # handed over to the consumer
            self._put(_End(error))

    def _put(self, item: Item | _End) -> bool:
        return put_unless_stopped(self._queue, item, self._stopped)


def put_unless_stopped(into: queue.Queue[Item], item: Item, stopped: threading.Event) -> bool:
    """Put an item into a bounded queue, waiting for room; False if the consumer has stopped."""
    while not stopped.is_set():
        try:
            into.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return True
    return False
