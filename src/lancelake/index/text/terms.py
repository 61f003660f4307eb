"""Term dictionaries: the number of a term, and the terms similar to one."""

from __future__ import annotations

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

    def number(self, term: str) -> int | None:
        """Search a term by halves."""
        wanted, low, high = term.encode(), 0, len(self.words)
        while low < high:
            middle = (low + high) // 2
            if self.words[middle].as_py().encode() < wanted:
                low = middle + 1
            else:
                high = middle
        is_found = low < len(self.words) and self.words[low].as_py() == term
        return int(self.numbers[low]) if is_found else None


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
