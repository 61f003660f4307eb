"""Terms of a partition: dictionary, prefixes, similar terms.

A node is stored before those that lead to it and is read backwards from its last byte. One with a
single transition packs the character into its first byte if the character is common.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import CorruptTableError
from lancelake.index.text.packing import rows_at, runs

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
            letters_of = rows_at(letters, offsets[rows], length).astype(np.uint32)
            others = np.flatnonzero((lengths == length) & ~is_ascii)
            if len(others):
                texts = words.take(pa.array(others)).to_pylist()
                more = np.array(texts, dtype=f"<U{length}").view(np.uint32)
                rows = np.concatenate([rows, others])
                # Words in order of their bytes are in order of their characters, too.
                order = np.argsort(rows)
                rows = rows[order]
                letters_of = np.concatenate([letters_of, more.reshape(-1, length)])[order]
            self._by_length[length] = _WordsOfLength.of(rows, letters_of)

    def find(self, term: str, distance: int, prefix_length: int) -> list[str]:
        """Return the words within a distance of a term that start as it does, in order."""
        wanted = np.array([ord(character) for character in term], np.uint32)
        fixed = min(prefix_length, len(wanted))
        parts = [
            group.near(wanted, distance, fixed)
            for length, group in self._by_length.items()
            if abs(length - len(term)) <= distance and length >= fixed
        ]
        rows = np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))
        words: list[str] = self._words.take(pa.array(rows)).to_pylist()
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
        prefixes = self.prefixes[depth]
        low = np.searchsorted(prefixes, starts)
        counts = np.searchsorted(prefixes, stops) - low
        places = runs(low, counts)
        ends = np.append(prefixes, len(self.rows))
        return prefixes[places], ends[places + 1], np.repeat(np.arange(len(starts)), counts)


def _with_letters(changes: I32, letters: Letters, wanted: Letters, limit: int) -> I32:
    """Return the changes that make prefixes with a further letter equal to those of a term.

    A row has the changes for each prefix of the term. More changes than the limit are only known
    to be more.
    """
    places = np.arange(changes.shape[1], dtype=np.int32)
    fewest = changes + np.int32(1)
    is_other = letters[:, None] != wanted[None]
    np.minimum(fewest[:, 1:], changes[:, :-1] + is_other, out=fewest[:, 1:])
    # A letter of the term that a word lacks is one change more than the place before.
    fewest = np.minimum.accumulate(fewest - places, axis=1) + places
    least: I32 = np.minimum(fewest, np.int32(limit + 1))
    return least


_HEAD = struct.Struct("<QQ")
_FOOT = struct.Struct("<QQ")
_CHECKSUM_BYTES = 4
_COMMON = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWUV"
_INDEXED = 32
_INDEX_BYTES = 256
_VERSIONS = (1, 2, 3)
_INDEXED_VERSION = 2
_CHECKED_VERSION = 3
# Forms of a node, in the highest bits of its last byte.
_SINGLE = 2
_NEXT = 3


@dataclass(frozen=True, slots=True)
class Node:
    """A state: whether a term ends here, what that adds, and where characters lead."""

    is_final: bool
    output: int
    transitions: tuple[tuple[int, int, int], ...]
    """Character, number to add and place of the next node, by character."""


class Transducer:
    """A map of terms, in bytes, to numbers."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what = data, what
        try:
            self._version: int = _HEAD.unpack_from(data)[0]
            checksum = _CHECKSUM_BYTES if self._version >= _CHECKED_VERSION else 0
            foot = _FOOT.unpack_from(data, len(data) - _FOOT.size - checksum)
        except struct.error as error:
            raise self._damaged() from error
        self._size: int = foot[0]
        self._root: int = foot[1]
        if self._version not in _VERSIONS or self._root >= len(data):
            raise self._damaged()

    def __len__(self) -> int:
        return self._size

    def get(self, term: bytes) -> int | None:
        """Return the number of a term; None if there is none."""
        place, total = self._root, 0
        for character in term:
            node = self.node(place)
            step = next((t for t in node.transitions if t[0] == character), None)
            if step is None:
                return None
            total += step[1]
            place = step[2]
        node = self.node(place)
        return total + node.output if node.is_final else None

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield all terms with their numbers, in order."""
        stack: list[tuple[int, bytes, int]] = [(self._root, b"", 0)]
        while stack:
            place, term, total = stack.pop()
            node = self.node(place)
            if node.is_final:
                yield term, total + node.output
            if len(term) > len(self._data):
                raise self._damaged()
            for character, output, target in reversed(node.transitions):
                stack.append((target, term + bytes([character]), total + output))

    def node(self, place: int) -> Node:
        """Read the node that ends at a place."""
        if place == 0:
            return Node(is_final=True, output=0, transitions=())
        try:
            state = self._data[place]
            if state >> 6 == _NEXT:
                return self._next(place, state)
            if state >> 6 == _SINGLE:
                return self._single(place, state)
            return self._several(place, state)
        except IndexError as error:
            raise self._damaged() from error

    def _character(self, place: int, state: int) -> tuple[int, int]:
        """Return the character of a single transition, and where what precedes it ends."""
        common = state & 63
        return (_COMMON[common - 1], place) if common else (self._data[place - 1], place - 1)

    def _next(self, place: int, state: int) -> Node:
        character, at = self._character(place, state)
        return Node(is_final=False, output=0, transitions=((character, 0, at - 1),))

    def _single(self, place: int, state: int) -> Node:
        character, at = self._character(place, state)
        sizes = self._data[at - 1]
        step_bytes, output_bytes = sizes >> 4, sizes & 15
        at -= 1 + step_bytes
        step = self._number(at, step_bytes)
        at -= output_bytes
        output = self._number(at, output_bytes)
        return Node(
            is_final=False, output=0, transitions=((character, output, self._target(at, step)),)
        )

    def _several(self, place: int, state: int) -> Node:
        is_final, count, at = bool(state & 64), state & 63, place
        if not count:
            at -= 1
            # A count of 1 has a form of its own, so it stands for all 256 characters.
            count = 256 if self._data[at] == 1 else self._data[at]
        at -= 1
        sizes = self._data[at]
        step_bytes, output_bytes = sizes >> 4, sizes & 15
        if count > _INDEXED and self._version >= _INDEXED_VERSION:
            at -= _INDEX_BYTES
        characters = at - count
        steps = characters - count * step_bytes
        outputs = steps - count * output_bytes
        end = outputs - (output_bytes if is_final else 0)
        transitions = []
        for number in range(count):
            character = self._data[at - number - 1]
            step = self._number(characters - (number + 1) * step_bytes, step_bytes)
            output = self._number(steps - (number + 1) * output_bytes, output_bytes)
            transitions.append((character, output, self._target(end, step)))
        final = self._number(outputs - output_bytes, output_bytes) if is_final else 0
        return Node(is_final=is_final, output=final, transitions=tuple(sorted(transitions)))

    def _target(self, end: int, step: int) -> int:
        target = 0 if step == 0 else end - step
        if target < 0:
            raise self._damaged()
        return target

    def _number(self, at: int, size: int) -> int:
        if at < 0:
            raise self._damaged()
        return int.from_bytes(self._data[at : at + size], "little")

    def _damaged(self) -> CorruptTableError:
        return CorruptTableError(f"{self._what} has a damaged term dictionary")


U32 = npt.NDArray[np.uint32]


class SortedTerms:
    """Terms in order of their bytes, with their numbers."""

    def __init__(self, words: pa.Array, numbers: U32) -> None:
        self.words, self.numbers = words, numbers

    def __len__(self) -> int:
        return len(self.words)

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
        pairs = list(self._transducer.items())
        words = pa.array([term.decode() for term, _ in pairs], pa.large_string())
        return SortedTerms(words, np.array([number for _, number in pairs], np.uint32))

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


Terms = SortedTerms | TransducedTerms
"""The terms of a partition."""
