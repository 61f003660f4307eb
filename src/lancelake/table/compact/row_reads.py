"""Read the rows of several fragments in sequence, opening the next ones ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from lancelake.table.compact.staging import Unit

Read = Callable[[int, Unit], Iterator[pa.RecordBatch]]
"""Reads a fragment, given its position among those that are read."""

Begun = tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]
"""The first rows of a fragment, and the remaining ones."""

_MOST_AHEAD = 3
_AHEAD_BYTES = 32 << 20


def read_in_turn(units: Sequence[Unit], read: Read) -> Iterator[pa.RecordBatch]:
    """Yield the output of `read` for each fragment, in order."""
    sizes = [sum(file.file_size_bytes or 0 for file in f.files) for _, f in units]
    ahead = max(1, min(_MOST_AHEAD, int(_AHEAD_BYTES / max(1, *sizes))))

    def begin(number: int, unit: Unit) -> Begun:
        batches = read(number, unit)
        return next(batches, None), batches

    with ThreadPoolExecutor(ahead, thread_name_prefix="open") as pool:
        waiting = deque(enumerate(units))
        begun: deque[Future[Begun]] = deque()
        while waiting or begun:
            while waiting and len(begun) < ahead:
                begun.append(pool.submit(begin, *waiting.popleft()))
            first, rest = begun.popleft().result()
            if first is not None:
                yield first
            yield from rest
