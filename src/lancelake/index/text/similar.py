"""Words within an edit distance of a term."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.index.text.segments_of_bytes import rows_at, runs

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Letters = npt.NDArray[np.uint32]

_SHORT, _MIDDLE = 2, 5
_MOST_CHANGES = np.iinfo(np.int32).max // 2


def automatic_distance(term: str) -> int:
    """Return the edit distance that the length of a term allows."""
    if len(term) <= _SHORT:
        return 0
    return 1 if len(term) <= _MIDDLE else 2


class SimilarWords:
    """Words in order of their bytes, prepared for searches: those of each length together."""

    def __init__(self, words: pa.Array) -> None:
        self._words = words
        self._by_length: dict[int, _WordsOfLength] = {}
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
                # Words in order of their bytes are in order of their characters, too.
                order = np.argsort(rows)
                rows = rows[order]
                found = np.concatenate([found, more.reshape(-1, length)])[order]
            self._by_length[length] = _WordsOfLength.of(rows, found)

    def find(self, term: str, distance: int, prefix_length: int) -> list[str]:
        """Return the words within a distance of a term that start as it does, in order."""
        wanted = np.array([ord(character) for character in term], np.uint32)
        fixed = min(prefix_length, len(wanted))
        found = [
            group.near(wanted, distance, fixed)
            for length, group in self._by_length.items()
            if abs(length - len(term)) <= distance and length >= fixed
        ]
        chosen = np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
        words: list[str] = self._words.take(pa.array(chosen)).to_pylist()
        return words


@dataclass(frozen=True, slots=True, eq=False)
class _WordsOfLength:
    """Words of one length in order, whose common prefixes are compared once."""

    rows: I64
    letters: Letters
    prefixes: tuple[I64, ...]
    """The first word of each prefix, for prefixes of 1, 2, ... letters; a longer prefix is that
    of one word."""

    @staticmethod
    def of(rows: I64, letters: Letters) -> _WordsOfLength:
        """Prepare words in order."""
        count, length = letters.shape
        is_new = np.zeros(count, np.bool_)
        is_new[:1] = True
        prefixes: list[I64] = []
        for depth in range(length):
            is_new[1:] |= letters[1:, depth] != letters[:-1, depth]
            if bool(is_new.all()):
                break
            prefixes.append(np.flatnonzero(is_new))
        return _WordsOfLength(rows, letters, tuple(prefixes))

    def near(self, wanted: Letters, most: int, fixed: int) -> I64:
        """Return the rows of the words within a distance of a term, with its first letters.

        The words of a prefix that is beyond the distance are left out together.
        """
        count, length = self.letters.shape
        limit = min(most, _MOST_CHANGES)
        starts, stops = np.zeros(1, np.int64), np.full(1, count)
        changes = np.minimum(np.arange(len(wanted) + 1), limit + 1).astype(np.int32)[None]
        for depth in range(length):
            starts, stops, parents = self._longer(depth, starts, stops)
            letters = self.letters[starts, depth]
            changes = _with_letters(changes[parents], letters, wanted, limit)
            is_near = changes.min(axis=1) <= limit
            if depth < fixed:
                is_near &= letters == wanted[depth]
            starts, stops, changes = starts[is_near], stops[is_near], changes[is_near]
        return self.rows[starts[changes[:, -1] <= limit]]

    def _longer(self, depth: int, starts: I64, stops: I64) -> tuple[I64, I64, I64]:
        """Return the words of the prefixes that are longer by a letter, and what they extend."""
        if depth >= len(self.prefixes):
            counts = stops - starts
            firsts = runs(starts, counts)
            return firsts, firsts + 1, np.repeat(np.arange(len(starts)), counts)
        known = self.prefixes[depth]
        low = np.searchsorted(known, starts)
        counts = np.searchsorted(known, stops) - low
        chosen = runs(low, counts)
        ends = np.append(known, len(self.rows))
        return known[chosen], ends[chosen + 1], np.repeat(np.arange(len(starts)), counts)


def _with_letters(changes: I32, letters: Letters, wanted: Letters, limit: int) -> I32:
    """Return the changes that make prefixes with a further letter equal to those of a term.

    A row has the changes for each prefix of the term. More changes than the limit are only known
    to be more.
    """
    places = np.arange(changes.shape[1], dtype=np.int32)
    found = changes + np.int32(1)
    is_other = letters[:, None] != wanted[None]
    np.minimum(found[:, 1:], changes[:, :-1] + is_other, out=found[:, 1:])
    # A letter of the term that a word lacks is one change more than the place before.
    found = np.minimum.accumulate(found - places, axis=1) + places
    least: I32 = np.minimum(found, np.int32(limit + 1))
    return least
