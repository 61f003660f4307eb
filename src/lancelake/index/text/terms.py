"""Term dictionaries: the number of a term, and the terms similar to one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.text.fst import Transducer
from lancelake.index.text.similar import SimilarWords

U32 = npt.NDArray[np.uint32]


class Terms(Protocol):
    """The terms of a partition."""

    def __len__(self) -> int: ...

    def number(self, term: str) -> int | None:
        """Return the number of a term; None if there is none."""
        ...

    @property
    def words(self) -> pa.Array:
        """All terms, in order of their bytes."""
        ...

    @property
    def numbers(self) -> U32:
        """The number of each of `words`."""
        ...

    @property
    def similar(self) -> SimilarWords:
        """The terms, prepared to find similar ones."""
        ...


class SortedTerms:
    """Terms in order of their bytes, with their numbers."""

    def __init__(self, words: pa.Array, numbers: U32) -> None:
        self.words, self.numbers = words, numbers

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        """About how much memory the terms take."""
        return int(self.words.nbytes) + self.numbers.nbytes

    @cached_property
    def similar(self) -> SimilarWords:
        """The terms, prepared to find similar ones."""
        return SimilarWords(self.words)

    @cached_property
    def _stored(self) -> Callable[[int], bytes]:
        """What returns the bytes of a term."""
        _, offsets, data = self.words.buffers()
        bounds = np.frombuffer(offsets, np.int64)[self.words.offset :]
        whole = memoryview(data or b"")
        return lambda place: bytes(whole[bounds[place] : bounds[place + 1]])

    def number(self, term: str) -> int | None:
        """Search a term by halves."""
        wanted = term.encode()
        place = bisect_left(range(len(self.words)), wanted, key=self._stored)
        is_found = place < len(self.words) and self._stored(place) == wanted
        return int(self.numbers[place]) if is_found else None


class TransducedTerms:
    """Terms in a transducer."""

    def __init__(self, transducer: Transducer) -> None:
        self._transducer = transducer

    def __len__(self) -> int:
        return len(self._transducer)

    def number(self, term: str) -> int | None:
        """Follow the characters of a term."""
        return self._transducer.get(term.encode())

    @cached_property
    def _listed(self) -> SortedTerms:
        found = list(self._transducer.items())
        words = pa.array([term.decode() for term, _ in found], pa.large_string())
        return SortedTerms(words, np.array([number for _, number in found], np.uint32))

    @property
    def words(self) -> pa.Array:
        """All terms, in order."""
        return self._listed.words

    @property
    def numbers(self) -> U32:
        """The number of each of `words`."""
        return self._listed.numbers

    @property
    def similar(self) -> SimilarWords:
        """The terms, prepared to find similar ones."""
        return self._listed.similar
