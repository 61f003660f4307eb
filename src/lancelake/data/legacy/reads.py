"""Batched reads for the decoders of legacy files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lancelake.data.byte_source import ByteSource
from lancelake.errors import CorruptTableError

T = TypeVar("T")
Int64s: TypeAlias = npt.NDArray[np.int64]

MAX_GAP_BYTES = 64 * 1024
WASTE_BYTES = 8 * 1024 * 1024
_MAX_POSITION = (1 << 63) - 1
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Spans:
    """Request for pieces of a file, joined."""

    starts: Int64s
    lengths: Int64s

    @staticmethod
    def one(start: int, length: int) -> Spans:
        """Request a single piece."""
        if start + length > _MAX_POSITION:
            msg = f"there are no {length} bytes at {start}"
            raise CorruptTableError(msg)
        return Spans(np.array([start], np.int64), np.array([length], np.int64))


# A coroutine that requests bytes, any number of times, and returns a T.
Decoding: TypeAlias = Generator[list[Spans], list[bytes], T]


def together(parts: Sequence[Decoding[T]]) -> Decoding[list[T]]:
    """Run several decoders together, so that they share reads."""
    results: dict[int, T] = {}
    waiting: dict[int, list[Spans]] = {}

    def advance(index: int, answers: list[bytes] | None) -> None:
        waiting.pop(index, None)
        try:
            waiting[index] = next(parts[index]) if answers is None else parts[index].send(answers)
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(parts)):
        advance(index, None)
    while waiting:
        questions = dict(waiting)
        given = iter((yield [spans for asked in questions.values() for spans in asked]))
        for index, asked in questions.items():
            advance(index, [next(given) for _ in asked])
    return [results[index] for index in range(len(parts))]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cached bytes of a file."""

    start: int
    data: bytes

    @property
    def stop(self) -> int:
        """Position after the last byte."""
        return self.start + len(self.data)


class LegacyReads:
    """A file read in few chunks, which are cached."""

    def __init__(self, source: ByteSource, *, size_bytes: int, known: Iterable[Chunk] = ()) -> None:
        """Read from `source`; `known` bytes are cached."""
        self._source = source
        self._size_bytes = size_bytes
        self._chunks = sorted(known, key=lambda chunk: chunk.start)

    def run(self, decoding: Decoding[T]) -> T:
        """Run a decoder and answer its requests."""
        try:
            asked = next(decoding)
            while True:
                asked = decoding.send(self._answer(asked))
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, asked: list[Spans]) -> list[bytes]:
        nothing = np.empty(0, np.int64)
        starts = np.concatenate([nothing, *(spans.starts for spans in asked)])
        stops = starts + np.concatenate([nothing, *(spans.lengths for spans in asked)])
        self._ensure_inside(starts, stops)
        missing = (self._places(starts, stops) == _NOWHERE) & (starts < stops)
        for start, stop in merged(starts[missing], stops[missing]):
            self._chunks.append(Chunk(start, self._source.read(start, stop - start)))
        self._chunks.sort(key=lambda chunk: chunk.start)
        pieces = self._pieces(starts, stops)
        return [b"".join(next(pieces) for _ in range(spans.starts.size)) for spans in asked]

    def _ensure_inside(self, starts: Int64s, stops: Int64s) -> None:
        outside = (starts < 0) | (stops < starts) | (stops > self._size_bytes)
        if outside.any():
            first = int(np.argmax(outside))
            msg = f"there are no bytes {starts[first]} to {stops[first]}"
            raise CorruptTableError(msg)

    def _places(self, starts: Int64s, stops: Int64s) -> npt.NDArray[np.intp]:
        """Return the index of a chunk with each piece."""
        if not self._chunks:
            return np.full(starts.size, _NOWHERE)
        firsts = np.array([chunk.start for chunk in self._chunks], np.int64)
        lasts = np.array([chunk.stop for chunk in self._chunks], np.int64)
        # Of the chunks that start early enough, the one that ends last.
        is_record = np.concatenate(([True], lasts[1:] > np.maximum.accumulate(lasts)[:-1]))
        furthest = np.maximum.accumulate(np.where(is_record, np.arange(lasts.size), 0))
        before = np.searchsorted(firsts, starts, side="right") - 1
        found = furthest[np.maximum(before, 0)]
        return np.where((before >= 0) & (lasts[found] >= stops), found, _NOWHERE)

    def _pieces(self, starts: Int64s, stops: Int64s) -> Generator[memoryview, None, None]:
        views = [memoryview(chunk.data) for chunk in self._chunks]
        firsts = [chunk.start for chunk in self._chunks]
        places = self._places(starts, stops).tolist()
        for place, start, stop in zip(places, starts.tolist(), stops.tolist(), strict=True):
            if start == stop:
                yield memoryview(b"")
            else:
                yield views[place][start - firsts[place] : stop - firsts[place]]


@contextmanager
def damage_in(source: ByteSource) -> Iterator[None]:
    """Add the file's name to errors about its bytes."""
    try:
        yield
    except CorruptTableError as error:
        msg = f"{source.name} is damaged: {error.problem}"
        raise CorruptTableError(msg, path=source.name) from error


def merged(
    starts: Int64s, stops: Int64s, *, waste_bytes: int = WASTE_BYTES
) -> list[tuple[int, int]]:
    """Merge pieces into reads while the gaps between them are small.

    All reads have at most twice the bytes of the pieces, plus `waste_bytes`.
    """
    if not starts.size:
        return []
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    gaps = np.maximum(starts[1:] - stops[:-1], 0)
    wanted = int(stops[-1] - starts[0] - gaps.sum())
    smallest_first = np.argsort(gaps, kind="stable")
    affordable = np.cumsum(gaps[smallest_first]) <= wanted + waste_bytes
    bridged = np.zeros(gaps.size, np.bool_)
    bridged[smallest_first] = affordable & (gaps[smallest_first] <= MAX_GAP_BYTES)
    breaks = np.flatnonzero(~bridged)
    firsts = starts[np.concatenate(([0], breaks + 1))]
    lasts = stops[np.concatenate((breaks, [stops.size - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
