"""Substrings that a text must contain to match a DataFusion regular expression (Rust syntax).

Only common syntax is parsed; a pattern with any other syntax needs nothing, which is always safe.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lancelake.expr.need import NOTHING, Contains, Need, all_needed, any_needed

_SPECIAL = frozenset("\\.+*?()|[]{}^$")
_REPEATED = re.compile(r"\{(\d+)(,\d*)?\}")
# Escapes of an unknown character, or of a position between characters.
_UNKNOWN_ESCAPES = frozenset("dDwWsSbBAzntrfv")
_SET_OPERATORS = ("&&", "--", "~~")
_MOST_GROUPS = 32


def need_of_regex(pattern: str) -> Need:
    """Return the substrings of every text that matches a pattern."""
    try:
        return _Reader(pattern).read()
    except _NotPlainError:
        return NOTHING


class _NotPlainError(Exception):
    """The pattern has syntax that is not parsed."""


class _Piece(NamedTuple):
    """A part of a pattern: one character, or a group with its needs."""

    letter: str | None
    need: Need = NOTHING


class _Repeat(NamedTuple):
    is_needed: bool
    is_once: bool


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> Need:
        found = self._alternatives()
        if self._at != len(self._pattern):
            raise _NotPlainError
        return found

    def _alternatives(self) -> Need:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else any_needed(branches)

    def _sequence(self) -> Need:
        needs: list[Need] = []
        run = ""
        while self._peek() not in ("", "|", ")"):
            letter, need = self._piece()
            is_needed, is_once = self._repeat()
            if letter is not None and is_needed:
                run += letter
                if is_once:
                    continue
            needs.append(Contains(run))
            # The last repetition of a character is adjacent to the next part.
            run = letter if letter is not None and is_needed else ""
            if is_needed:
                needs.append(need)
        needs.append(Contains(run))
        return all_needed([need for need in needs if need != Contains("")])

    def _piece(self) -> _Piece:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "." | "^" | "$":
                return _Piece(None)
            case "\\":
                return self._escape()
            case _ if letter in _SPECIAL:
                raise _NotPlainError
            case _:
                return _Piece(letter)

    def _group(self) -> _Piece:
        self._depth += 1
        if self._peek() == "?":
            if not self._pattern.startswith("?:", self._at):
                raise _NotPlainError
            self._at += 2
        if self._depth > _MOST_GROUPS:
            raise _NotPlainError
        need = self._alternatives()
        if self._next() != ")":
            raise _NotPlainError
        self._depth -= 1
        return _Piece(None, need)

    def _class(self) -> _Piece:
        start = self._at
        if self._peek() == "^":
            self._at += 1
        if self._peek() == "]":
            self._at += 1
        while (letter := self._next()) != "]":
            if letter == "[":
                raise _NotPlainError
            if letter == "\\":
                self._next()
        if any(operator in self._pattern[start : self._at] for operator in _SET_OPERATORS):
            raise _NotPlainError
        return _Piece(None)

    def _escape(self) -> _Piece:
        letter = self._next()
        if letter in _UNKNOWN_ESCAPES:
            return _Piece(None)
        if not letter.isascii() or letter.isalnum() or letter in "<>_ ":
            raise _NotPlainError
        return _Piece(letter)

    def _repeat(self) -> _Repeat:
        is_needed, is_once = True, True
        while (letter := self._peek()) and letter in "*+?{":
            if letter == "{":
                found = _REPEATED.match(self._pattern, self._at)
                if found is None:
                    raise _NotPlainError
                self._at = found.end()
                is_needed = is_needed and int(found[1]) > 0
            else:
                self._at += 1
                is_needed = is_needed and letter == "+"
            is_once = False
            if self._peek() == "?":  # takes as few as it can
                self._at += 1
        return _Repeat(is_needed, is_once)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        if not letter:
            raise _NotPlainError
        self._at += 1
        return letter
