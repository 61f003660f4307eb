"""Prefetch of streams of batches on threads, in order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context

import pyarrow as pa

from lancelake.data.read_ahead import put_unless_stopped

_QUEUE_BATCHES = 2
_EXIT_S = 5.0

Stream = Callable[[], Iterator[pa.RecordBatch]]


def in_order(streams: Iterable[Stream], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all streams in order, prefetching some of them."""
    waiting = iter(streams)
    crew = _Crew(max(1, at_once))
    try:
        while True:
            while crew.has_room and (stream := next(waiting, None)) is not None:
                crew.start(stream)
            if not crew.running:
                return
            yield from crew.running[0].batches()
            crew.running.popleft()
    finally:
        crew.stop()


class _Crew:
    """Threads, one for each running stream; a free thread takes the next stream."""

    def __init__(self, size: int) -> None:
        self.running: deque[_Producer] = deque()
        self._size = size
        self._threads: list[threading.Thread] = []
        self._given: queue.SimpleQueue[_Producer | None] = queue.SimpleQueue()
        _crews.add(self)

    @property
    def has_room(self) -> bool:
        """Whether another stream can be started."""
        return len(self.running) < self._size

    def start(self, stream: Stream) -> None:
        """Start a stream."""
        producer = _Producer(stream)
        self.running.append(producer)
        self._given.put(producer)
        if len(self._threads) < self._size:
            thread = threading.Thread(target=_work, args=(self._given,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Signal the threads to stop."""
        for producer in list(self.running):
            producer.stop()
        for _ in self._threads:
            self._given.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for the threads to stop, with a timeout."""
        for thread in self._threads:
            thread.join(timeout_s)


def _work(given: queue.SimpleQueue[_Producer | None]) -> None:
    while (producer := given.get()) is not None:
        producer.context.run(producer.run)


class _Producer:
    """One stream, which is prefetched by a few batches."""

    def __init__(self, stream: Stream) -> None:
        self.context = copy_context()
        self._stream = stream
        self._queue: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(
            _QUEUE_BATCHES
        )
        self._stopped = threading.Event()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the stream, or raise its error."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Stop the prefetch."""
        self._stopped.set()

    def run(self) -> None:
        """Produce the batches until they end or the prefetch is stopped."""
        try:
            for batch in self._stream():
                if not self._put(batch):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001  # handed over to the consumer
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        return put_unless_stopped(self._queue, item, self._stopped)


_crews: weakref.WeakSet[_Crew] = weakref.WeakSet()


@atexit.register
def _end_threads() -> None:
    """Stop the threads of abandoned scans, because they must not be killed inside the codec."""
    at_work = list(_crews)
    for crew in at_work:
        crew.stop()
    for crew in at_work:
        crew.join(_EXIT_S)
