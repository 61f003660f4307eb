"""Words within an edit distance of a term."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.index.text.segments_of_bytes import rows_at

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
Letters = npt.NDArray[np.uint32]

_SHORT, _MIDDLE = 2, 5


def automatic_distance(term: str) -> int:
    """Return the edit distance that the length of a term allows."""
    if len(term) <= _SHORT:
        return 0
    return 1 if len(term) <= _MIDDLE else 2


class SimilarWords:
    """Words in order of their bytes, prepared for searches: the letters of each length together."""

    def __init__(self, words: pa.Array) -> None:
        self._words = words
        self._by_length: dict[int, tuple[I64, Letters]] = {}
        lengths = np.asarray(pc.utf8_length(words), dtype=np.int64)
        is_ascii = lengths == np.asarray(pc.binary_length(words), dtype=np.int64)
        _, offset_buffer, data = words.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[words.offset :]
        letters = np.frombuffer(data or b"", np.uint8)
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero((lengths == length) & is_ascii)
            found = rows_at(letters, offsets[rows], length).astype(np.uint32)
            others = np.flatnonzero((lengths == length) & ~is_ascii)
            if len(others):
                texts = words.take(pa.array(others)).to_pylist()
                more = np.array(texts, dtype=f"<U{length}").view(np.uint32)
                rows = np.concatenate([rows, others])
                found = np.concatenate([found, more.reshape(-1, length)])
            self._by_length[length] = rows, found

    def find(self, term: str, distance: int, prefix_length: int) -> list[str]:
        """Return the words within a distance of a term that start as it does, in order."""
        wanted = np.array([ord(character) for character in term], np.uint32)
        found = [np.zeros(0, np.int64)]
        for length in self._lengths(len(term), distance):
            rows, letters = self._by_length[length]
            prefix = wanted[:prefix_length]
            if length < len(prefix):
                continue
            if len(prefix):
                is_right = np.all(letters[:, : len(prefix)] == prefix, axis=1)
                rows, letters = rows[is_right], letters[is_right]
            found.append(rows[distances(letters, wanted, distance) <= distance])
        chosen = np.sort(np.concatenate(found))
        words: list[str] = self._words.take(pa.array(chosen)).to_pylist()
        return words

    def _lengths(self, length: int, distance: int) -> Iterable[int]:
        near = range(max(0, length - distance), length + distance + 1)
        return [each for each in near if each in self._by_length]


def distances(letters: Letters, wanted: Letters, most: int) -> I8:
    """Return the edit distances of words of one length, the rows, to a term.

    Distances beyond `most` are only known to be greater.
    """
    count, length = letters.shape
    far = np.int8(min(most + 1, np.iinfo(np.int8).max - 1))
    before = np.full((length + 1, count), far, np.int8)
    for place in range(min(most, length) + 1):
        before[place] = place
    for number, character in enumerate(wanted.tolist(), start=1):
        row = np.full((length + 1, count), far, np.int8)
        if number <= most:
            row[0] = number
        # A cell beyond this band is reached by more changes than are allowed.
        for place in range(max(1, number - most), min(length, number + most) + 1):
            replaced = before[place - 1] + (letters[:, place - 1] != character)
            changed = np.minimum(before[place], row[place - 1]) + np.int8(1)
            row[place] = np.minimum(np.minimum(replaced, changed), far)
        before = row
    return before[length]
