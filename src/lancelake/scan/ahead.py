"""Streams of batches run ahead on threads, and are handed over in order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

_QUEUE_BATCHES = 2
_POLL_S = 0.05
_EXIT_S = 5.0

Stream = Callable[[], Iterator[pa.RecordBatch]]


def in_order(streams: Iterable[Stream], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all streams in order, while some of them run ahead."""
    waiting = iter(streams)
    running: deque[_Producer] = deque()
    try:
        while True:
            while len(running) < max(1, at_once) and (stream := next(waiting, None)) is not None:
                running.append(_Producer(stream))
            if not running:
                return
            yield from running[0].batches()
            running.popleft()
    finally:
        for producer in running:
            producer.stop()


class _Producer:
    """Runs one stream on a thread of its own, never more than a few batches ahead."""

    def __init__(self, stream: Stream) -> None:
        self._queue: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(
            _QUEUE_BATCHES
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(stream,), daemon=True)
        _producers.add(self)
        self._thread.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what the stream yields; raise what it raises."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Let the thread end soon, whether or not its stream has."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, but not forever."""
        self._thread.join(timeout_s)

    def _run(self, stream: Stream) -> None:
        try:
            for batch in stream():
                if not self._put(batch):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001  # handed over to the consumer
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False


_producers: weakref.WeakSet[_Producer] = weakref.WeakSet()


@atexit.register
def _end_threads() -> None:
    """End the threads of scans that were left early: within the codec they must not be cut off."""
    running = list(_producers)
    for producer in running:
        producer.stop()
    for producer in running:
        producer.join(_EXIT_S)
