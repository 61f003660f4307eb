"""Trigrams of texts, with their numbers in index files.

Every character is folded to letters and digits by `folding`, or to neither. Three consecutive
letters or digits are a trigram; its number has these digits in base 37.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.scalar.ngram.folding import BEFORE_14, IN_ALL, SINCE_14, folding

U32: TypeAlias = npt.NDArray[np.uint32]
I64: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.int16]

WIDTH = 3
_BASE = 37
_NONE = -1
_ASCII = 128
# Bytes of text that are processed at once.
_SLICE_BYTES = 4 << 20


class Trigrams(NamedTuple):
    """Trigrams, and the row of each; a trigram of a row may be repeated."""

    tokens: U32
    rows: I64


class _Alphabet(NamedTuple):
    """Folding of characters: the number of digits, and their offset in `digits`."""

    counts: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    digits: Codes


def trigrams_of(texts: pa.Array) -> Iterator[Trigrams]:
    """Yield the trigrams of texts in any official release; rows are numbered from zero."""
    wide = texts.cast(pa.large_string())
    offsets = np.frombuffer(wide.buffers()[1], dtype=np.int64)
    offsets = offsets[wide.offset : wide.offset + len(wide) + 1]
    data = np.frombuffer(wide.buffers()[2] or b"", dtype=np.uint8)
    first = 0
    while first < len(wide):
        end = int(np.searchsorted(offsets, offsets[first] + _SLICE_BYTES, side="right")) - 1
        last = max(first + 1, end)
        part = data[offsets[first] : offsets[last]]
        for found in _of_slice(part, offsets[first : last + 1] - offsets[first]):
            yield Trigrams(found.tokens, found.rows + first)
        first = last


def required_by(text: str) -> list[int]:
    """Return the trigrams of every text that contains a substring, in all releases."""
    points, offsets = _points(np.frombuffer(text.encode(), dtype=np.uint8), None)
    digits, rows = _folded(points, offsets, _in_all())
    return [int(token) for token in np.unique(_numbered(digits, rows).tokens)]


def _of_slice(data: npt.NDArray[np.uint8], offsets: I64) -> Iterator[Trigrams]:
    if not len(data) or data.max() < _ASCII:
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        yield _numbered(_ascii()[data], rows)
        return
    points, starts = _points(data, offsets)
    yield _numbered(*_folded(points, starts, _before_14()))
    if bool(_is_folded_in_two_ways()[np.minimum(points, _outside())].any()):
        yield _numbered(*_folded(points, starts, _since_14()))


def _points(data: npt.NDArray[np.uint8], offsets: I64 | None) -> tuple[U32, I64]:
    """Return the code points of UTF-8 bytes, and the offset of each row."""
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), dtype="<u4")
    if offsets is None:
        return points, np.array([0, len(points)])
    begun = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])  # noqa: PLR2004  # UTF-8
    return points, begun[offsets]


def _folded(points: U32, offsets: I64, alphabet: _Alphabet) -> tuple[Codes, I64]:
    """Return the digits of folded characters, and the row of each."""
    known = np.minimum(points, len(alphabet.counts) - 1)
    counts = alphabet.counts[known].astype(np.int64)
    rows = np.repeat(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), counts)
    ends = np.cumsum(counts)
    within = np.arange(len(rows)) - np.repeat(ends - counts, counts)
    return alphabet.digits[np.repeat(alphabet.starts[known], counts) + within], rows


def _numbered(digits: Codes, rows: I64) -> Trigrams:
    first, second, third = digits[:-2], digits[1:-1], digits[2:]
    is_whole = (first != _NONE) & (second != _NONE) & (third != _NONE)
    is_whole &= rows[:-2] == rows[2:]
    places = np.flatnonzero(is_whole)
    high, middle, low = (part[places].astype(np.uint32) for part in (first, second, third))
    return Trigrams(high * _BASE**2 + middle * _BASE + low, rows[places])


def _digit(letter: str) -> int:
    """Return the digit of a letter; digits of capitals are computed modulo 256."""
    if not (letter.isascii() and letter.isalnum()):
        return _NONE
    place = ord(letter) - ord("0") if letter.isdecimal() else ord(letter) - ord("a") + 10
    return (place + 1) % 256


@functools.cache
def _ascii() -> Codes:
    return np.array([_digit(chr(point).lower()) for point in range(_ASCII)], dtype=np.int16)


def _alphabet(table: dict[int, str]) -> _Alphabet:
    """Return an alphabet; its last character represents all following ones."""
    size = _outside() + 1
    counts, starts = np.ones(size, dtype=np.uint8), np.full(size, _ASCII, dtype=np.int32)
    starts[:_ASCII] = np.arange(_ASCII)
    digits = [*_ascii().tolist(), _NONE]
    for point, target in table.items():
        counts[point], starts[point] = len(target), len(digits)
        digits += map(_digit, target)
    return _Alphabet(counts, starts, np.array(digits, dtype=np.int16))


@functools.cache
def _outside() -> int:
    """Return the first code point after all that are folded."""
    return max(folding(IN_ALL, BEFORE_14, SINCE_14)) + 1


@functools.cache
def _in_all() -> _Alphabet:
    return _alphabet(folding(IN_ALL))


@functools.cache
def _before_14() -> _Alphabet:
    return _alphabet(folding(IN_ALL, BEFORE_14))


@functools.cache
def _since_14() -> _Alphabet:
    return _alphabet(folding(IN_ALL, SINCE_14))


@functools.cache
def _is_folded_in_two_ways() -> npt.NDArray[np.bool_]:
    found = np.zeros(_outside() + 1, dtype=np.bool_)
    found[list(folding(BEFORE_14, SINCE_14))] = True
    return found
