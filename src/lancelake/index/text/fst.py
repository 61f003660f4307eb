"""Finite state transducers: maps of terms to numbers, as other implementations store them.

A node is stored before those that lead to it and is read backwards from its last byte. One with a
single transition packs the character into its first byte if the character is common.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.errors import CorruptTableError

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

    @property
    def root(self) -> int:
        """The place of the first node."""
        return self._root

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
