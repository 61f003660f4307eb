"""Term dictionaries: the number of a term, and the terms similar to one."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.index.text.fst import Transducer

U32 = npt.NDArray[np.uint32]

_SHORT, _MIDDLE = 2, 5


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


def automatic_distance(term: str) -> int:
    """Return the edit distance that the length of a term allows."""
    if len(term) <= _SHORT:
        return 0
    return 1 if len(term) <= _MIDDLE else 2


def similar(words: pa.Array, term: str, distance: int, prefix_length: int) -> list[str]:
    """Return the words within an edit distance of a term that start as it does, in order."""
    lengths = pc.utf8_length(words)
    near = pc.and_(
        pc.greater_equal(lengths, max(0, len(term) - distance)),
        pc.less_equal(lengths, len(term) + distance),
    )
    prefix = term[:prefix_length]
    if prefix:
        near = pc.and_(near, pc.starts_with(words, prefix))
    chosen = words.filter(near).to_pylist()
    if not chosen:
        return []
    width = max(map(len, chosen), default=0)
    letters = np.array(chosen, dtype=f"<U{max(1, width)}").view(np.uint32)
    letters = letters.reshape(len(chosen), -1)
    distances = _distances(letters, np.array([len(word) for word in chosen]), term)
    return [
        word for word, found in zip(chosen, distances.tolist(), strict=True) if found <= distance
    ]


def _distances(letters: U32, lengths: npt.NDArray[np.int64], term: str) -> npt.NDArray[np.int64]:
    """Return the edit distance of each word, a row of letters, to a term."""
    count, width = letters.shape
    before = np.tile(np.arange(width + 1), (count, 1))
    for number, character in enumerate(map(ord, term), start=1):
        row = np.empty_like(before)
        row[:, 0] = number
        for place in range(1, width + 1):
            replaced = before[:, place - 1] + (letters[:, place - 1] != character)
            changed = np.minimum(before[:, place], row[:, place - 1]) + 1
            row[:, place] = np.minimum(replaced, changed)
        before = row
    found: npt.NDArray[np.int64] = before[np.arange(count), lengths]
    return found
