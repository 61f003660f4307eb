"""Analysis of texts: words, folding, stems, stop words.

Release 4 folds as the tokenizer library does, which knows other characters.

Other texts are refused: where words end there needs dictionaries, or tables of all characters.

A text is divided by the base tokenizer; each distinct word then becomes a term, or none, by the
filters. Filters look at one word only, so each word is filtered once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import UnsupportedError
from lancelake.extras import optional
from lancelake.index.text.parameters import NGRAM, TextParameters

# Letters that have no decomposition.
_PLAIN = dict(zip("ÐØĐĦŁŊŦðøđħıĸłŋŧ", "DODHLNTdodhiklnt", strict=True))
_PLAIN |= {"Æ": "AE", "Œ": "OE", "Þ": "TH", "ẞ": "SS", "æ": "ae", "œ": "oe", "þ": "th", "ß": "ss"}


def fold(word: str) -> str:
    """Return a word with ASCII letters and digits in the place of characters that have them."""
    return word if word.isascii() else "".join(map(_fold, word))


@lru_cache(maxsize=1 << 12)
def _fold(char: str) -> str:
    parts = normalize("NFKD", char)
    plain = "".join(_PLAIN.get(part, part if part.isascii() else "") for part in parts)
    return plain or char


def identifier_words(identifier: str, *, at_numbers: bool) -> list[str]:
    """Return the words of an identifier.

    They end at underscores, where lower case changes to upper case, before the last of several
    capitals that a small letter follows, and if wanted before and after numbers.
    """
    return [
        word
        for part in identifier.split("_")
        if part
        for word in _words(part, at_numbers=at_numbers)
    ]


def _words(part: str, *, at_numbers: bool) -> list[str]:
    pieces: list[str] = []
    start = 0
    for place in range(1, len(part)):
        before, here, after = part[place - 1], part[place], part[place + 1 : place + 2]
        is_end = (before.islower() and here.isupper()) or (
            before.isupper() and here.isupper() and after.islower()
        )
        if is_end or (at_numbers and before.isnumeric() != here.isnumeric()):
            pieces.append(part[start:place])
            start = place
    return [*pieces, part[start:]]


_LETTERS = (
    "A-Za-z"
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
    "\u0370-\u0373\u0376\u0377\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u03ff"
    "\u0400-\u0481\u048a-\u052f"
)
# Signs that belong to no word: no-break space, quotation marks, dashes, ellipsis, currencies.
_SIGNS = "\u00a0\u00a3\u00ab\u00bb\u2013\u2014\u201c-\u201e\u2026\u20ac"
# Signs inside of words and numbers; curly apostrophes are refused: their folding differs.
_INNER = ".'"
_KNOWN = rf"\x00-\x7f{_LETTERS}{_SIGNS}"
_UNKNOWN = re.compile(f"[^{_KNOWN}]")
_SEGMENT = re.compile(
    f"(?:[{_LETTERS}0-9_]"
    f"|(?<=[{_LETTERS}])[{_INNER}](?=[{_LETTERS}])"
    f"|(?<=[0-9])[{_INNER},;](?=[0-9]))+"
)


def words(text: str) -> list[str]:
    """Return the words of a text; raise if it has characters of other alphabets."""
    ensure_known(text)
    return [each for each in _SEGMENT.findall(text) if each.strip("_")]


def ensure_known(text: str) -> None:
    """Raise if a text has characters of other alphabets."""
    sign = _UNKNOWN.search(text)
    if sign is not None:
        problem = f"texts with {sign.group()!r} are not divided into words as ICU does"
        action = "Search the index with official Lance, or build it with base_tokenizer='simple'."
        raise UnsupportedError(problem, action=action)


U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

NO_TERM = np.uint32((1 << 32) - 1)
"""Number of a word that the filters remove."""

_WORDS_KEPT = 1 << 20
_IDENTIFIER = r"[\p{Alphabetic}\p{N}_]+"


class QueryTerm(NamedTuple):
    """A term of a query and its position, relative to the first one."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The terms of some texts in order: the number of the term, of the text, and its position."""

    terms: U32
    texts: U32
    positions: U32


class Analyzer:
    """Divides texts into terms as the parameters of an index state."""

    def __init__(self, parameters: TextParameters) -> None:
        self._parameters = parameters
        self._numbers: dict[str, int] = {}
        self._terms: dict[str, int] = {}

    @cached_property
    def _filtered(self) -> Callable[[str], str | None]:
        return _filters(_library(), self._parameters)

    @cached_property
    def _words(self) -> Callable[[str], list[str]]:
        return _base(_library(), self._parameters)

    @property
    def terms(self) -> Sequence[str]:
        """The terms that were found so far, in the order of their numbers."""
        return list(self._terms)

    def query_terms(self, text: str) -> list[QueryTerm]:
        """Return the terms of a query."""
        terms = []
        for word, place in zip(*self._place_words(text), strict=True):
            term = self._filtered(word)
            if term is not None:
                terms.append(QueryTerm(term, place))
        first = terms[0].position if terms else 0
        return [QueryTerm(term, position - first) for term, position in terms]

    def number_of(self, term: str) -> int:
        """Return the number of a term, a new one if it was not found before."""
        return self._terms.setdefault(term, len(self._terms))

    def forget(self) -> None:
        """Start to number terms from zero."""
        self._numbers, self._terms = {}, {}

    def occurrences(self, texts: pa.Array) -> Occurrences:
        """Return the terms of texts, which have no nulls."""
        words, of_text, positions = self._split(texts)
        encoded = words.dictionary_encode()
        numbers = np.array([self._number(w) for w in encoded.dictionary.to_pylist()], np.uint32)
        terms = numbers[np.asarray(encoded.indices)] if len(numbers) else np.zeros(0, np.uint32)
        is_term = terms != NO_TERM
        return Occurrences(terms[is_term], of_text[is_term], positions[is_term])

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            term = self._filtered(word)
            number = int(NO_TERM) if term is None else self.number_of(term)
            if len(self._numbers) >= _WORDS_KEPT:
                self._numbers.clear()
            self._numbers[word] = number
        return number

    def _split(self, texts: pa.Array) -> tuple[pa.Array, U32, U32]:
        """Return the words of texts, the number of the text of each, and its position there."""
        alphabet = _ALPHABETS.get(self._parameters.base_tokenizer)
        if self._parameters.split_identifiers:
            alphabet = None
        if alphabet is not None and bool(pc.all(pc.string_is_ascii(texts)).as_py() is not False):
            return _ascii_words(texts, alphabet)
        words: list[str] = []
        places: list[int] = []
        counts: list[int] = []
        for text in texts.to_pylist():
            more, at = self._place_words(text)
            words += more
            places += at
            counts.append(len(more))
        of_text = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        return pa.array(words, pa.large_string()), of_text, np.array(places, np.uint32)

    def _place_words(self, text: str) -> tuple[list[str], Sequence[int]]:
        """Return the words of a text, and the position of each."""
        words = self._words(text)
        if self._parameters.base_tokenizer == NGRAM:
            return words, [0] * len(words)
        if not self._parameters.split_identifiers:
            return words, range(len(words))
        placed_words: list[str] = []
        places: list[int] = []
        position = 0
        for word in words:
            parts = identifier_words(word, at_numbers=self._parameters.split_on_numerics)
            if len(parts) > 1 and self._parameters.preserve_original:
                placed_words.append(word)
                places.append(position)
            parts = parts if len(parts) > 1 else [word]
            placed_words += parts
            places += range(position, position + len(parts))
            position += len(parts)
        return placed_words, places


def query_words(text: str) -> list[QueryTerm]:
    """Return the words of a query as they are: divided at spaces and punctuation, not filtered."""
    tantivy = _library()
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build().analyze(text)
    return [QueryTerm(word, place) for place, word in enumerate(words)]


def _alphabet(is_word: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    return np.array([chr(byte).isascii() and is_word(chr(byte)) for byte in range(256)])


_ALPHABETS = {
    "simple": _alphabet(str.isalnum),
    "whitespace": _alphabet(lambda char: char not in " \t\n\x0c\r"),
    "icu/split": _alphabet(str.isalnum),
    "code": _alphabet(lambda char: char.isalnum() or char == "_"),
}
"""Which ASCII characters are part of a word."""


def _ascii_words(texts: pa.Array, alphabet: npt.NDArray[np.bool_]) -> tuple[pa.Array, U32, U32]:
    """Divide texts of ASCII characters at all others than those of an alphabet."""
    flat = texts.cast(pa.large_string())
    _, bounds_buffer, data = flat.buffers()
    bounds = np.frombuffer(bounds_buffer, np.int64)[flat.offset : flat.offset + len(flat) + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    characters = np.frombuffer(data or b"", np.uint8)[first:last]
    is_word = alphabet[characters]
    is_start = is_word.copy()
    is_start[1:] &= ~is_word[:-1]
    # A text starts a new word even where the one before it ends with one.
    starts = (bounds[:-1] - first)[bounds[:-1] < bounds[1:]]
    is_start[starts] = is_word[starts]
    at = np.flatnonzero(is_start)
    # Words are adjacent once all other characters are left out.
    before = np.cumsum(is_word, dtype=np.int64)
    offsets = np.append(before[at] - 1, before[-1] if len(before) else 0).astype(np.int64)
    letters = characters[is_word]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    words = pa.Array.from_buffers(pa.large_string(), len(at), buffers)
    counts = np.diff(np.searchsorted(at, bounds - first))
    of_text = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    return words, of_text, _positions(counts)


def _positions(counts: I64) -> U32:
    """Number the words of each text from zero."""
    starts = np.cumsum(counts) - counts
    return (np.arange(int(counts.sum())) - np.repeat(starts, counts)).astype(np.uint32)


def _base(tantivy: Any, parameters: TextParameters) -> Callable[[str], list[str]]:
    match parameters.base_tokenizer:
        case "icu":
            return words
        case "simple" | "icu/split":
            tokenizer = tantivy.Tokenizer.simple()
        case "whitespace":
            tokenizer = tantivy.Tokenizer.whitespace()
        case "raw":
            tokenizer = tantivy.Tokenizer.raw()
        case "code":
            tokenizer = tantivy.Tokenizer.regex(_IDENTIFIER)
        case _:
            lengths = parameters.min_ngram_length, parameters.max_ngram_length
            tokenizer = tantivy.Tokenizer.ngram(*lengths, parameters.prefix_only)
    divide: Callable[[str], list[str]] = tantivy.TextAnalyzerBuilder(tokenizer).build().analyze
    if parameters.base_tokenizer != "icu/split":
        return divide

    def divide_known(text: str) -> list[str]:
        ensure_known(text)
        return divide(text)

    return divide_known


def _filters(tantivy: Any, parameters: TextParameters) -> Callable[[str], str | None]:
    """Return what turns a word into a term, or None."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    named = tantivy.Filter
    if parameters.max_token_length is not None:
        builder = builder.filter(named.remove_long(parameters.max_token_length))
    if parameters.lower_case:
        builder = builder.filter(named.lowercase())
    if parameters.stem:
        builder = builder.filter(named.stemmer(parameters.language.lower()))
    if parameters.stop_words:
        builder = builder.filter(named.custom_stopword(list(parameters.stop_words)))
    if parameters.has_old_folding:
        builder = builder.filter(named.ascii_fold())
    analyze = builder.build().analyze
    folds = parameters.ascii_folding and not parameters.has_old_folding

    def to_term(word: str) -> str | None:
        terms = analyze(word)
        if not terms:
            return None
        return fold(terms[0]) if folds else terms[0]

    return to_term


def _library() -> Any:
    return optional("tantivy", extra="search", purpose="full text search")
