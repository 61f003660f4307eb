"""Parser of JSON text in the dialect that Lance writers accept."""

from __future__ import annotations

import json
import re
from typing import TypeAlias

from lancelake.errors import SchemaMismatchError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

MAX_DEPTH = 2000
"""Maximum nesting: official releases read this many levels and abort on 5000."""


def parse_standard(text: str) -> JsonValue:
    """Parse standard JSON fast; after ValueError or RecursionError, `parse_extended` decides.

    A half surrogate pair is accepted here: such a string cannot be encoded, and only
    `parse_extended` handles it.
    """
    value: JsonValue = _STANDARD.decode(text)
    return value


def parse_extended(text: str) -> JsonValue:
    """Parse a text in the whole dialect, or raise `SchemaMismatchError`.

    In addition to JSON it has: nothing for null, words in any case, NaN and Infinity, signs,
    leading zeros, hexadecimal numbers, single quotes, bare member names and empty array elements.
    """
    return _ExtendedParser(text).parse()


def _not_json(reason: str, position: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"A value of a json column is not JSON: {reason} at character {position}",
        action="Pass valid JSON text.",
        reason=reason,
        position=position,
    )


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate name in an object")
    return members


_STANDARD = json.JSONDecoder(strict=False, object_pairs_hook=_unique)

_SPACE = re.compile(r"(?:[ \t\n\r\f]|\\[nrt]|\\x0C)*")
_WORD = re.compile(r"null|true|false|\+?nan|[+-]?infinity", re.ASCII | re.IGNORECASE)
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+)(?:\.([0-9a-fA-F]+))?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")
_STRINGS = {
    '"': re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL),
    "'": re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL),
}
_NAME = re.compile(r"(?![0-9])(?:[A-Za-z0-9_$]|[^\x00-\x7f])+")
_CODE = r"\\u(?:\{([0-9a-fA-F]{4})\}|([0-9a-fA-F]{4}))"
_HIGH_CODE = r"\\u(?:\{([dD][89abAB][0-9a-fA-F]{2})\}|([dD][89abAB][0-9a-fA-F]{2}))"
_ESCAPE = re.compile(rf"{_HIGH_CODE}{_CODE}|{_CODE}|\\(.)", re.DOTALL)
_CONSTANTS: dict[str, JsonValue] = {
    "null": None,
    "true": True,
    "false": False,
    "nan": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
}
_SIMPLE_ESCAPES = {
    "\\": "\\",
    '"': '"',
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_MAX_HEX_DIGITS = 32
_MAX_INT_DIGITS = 20


class _ExtendedParser:
    """Parses without recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open: list[list[JsonValue] | dict[str, JsonValue]] = []
        self._names: list[str] = []

    def parse(self) -> JsonValue:
        self._skip_space()
        if not self._peek():
            return None
        while True:
            value, is_complete = self._start_value()
            if is_complete:
                value, is_complete = self._place(value)
            if is_complete:
                return value

    def _start_value(self) -> tuple[JsonValue, bool]:
        """Read a scalar or an empty container; of others, just the start."""
        start = self._peek()
        if start not in ("[", "{"):
            return self._scalar(), True
        if len(self._open) == MAX_DEPTH:
            raise _not_json(f"more than {MAX_DEPTH} levels of nesting", self._position)
        container: list[JsonValue] | dict[str, JsonValue] = [] if start == "[" else {}
        self._step()
        if self._peek() == _closing(container):
            self._step()
            return container, True
        self._open.append(container)
        return self._start_member(container)

    def _start_member(
        self, container: list[JsonValue] | dict[str, JsonValue]
    ) -> tuple[JsonValue, bool]:
        if isinstance(container, dict):
            self._read_name(container)
            return None, False
        return None, self._peek() in (",", "]")

    def _place(self, value: JsonValue) -> tuple[JsonValue, bool]:
        """Add a finished value to its container; return whether the whole text is read."""
        while self._open:
            container = self._open[-1]
            if isinstance(container, list):
                container.append(value)
            else:
                container[self._names.pop()] = value
            self._skip_space()
            if self._peek() == _closing(container):
                value = self._open.pop()
                self._position += 1
                continue
            if self._peek() != ",":
                raise _not_json(f"no comma and no {_closing(container)}", self._position)
            self._step()
            value, is_empty_element = self._start_member(container)
            if not is_empty_element:
                return None, False
        self._skip_space()
        if self._peek():
            raise _not_json("more text after the value", self._position)
        return value, True

    def _read_name(self, members: dict[str, JsonValue]) -> None:
        start = self._position
        if self._peek() in ('"', "'"):
            name = self._string()
        else:
            name = self._take(_NAME, "no name").group()
        if name in members:
            raise _not_json(f"a second member named {name!r}", start)
        self._skip_space()
        if self._peek() != ":":
            raise _not_json("no colon", self._position)
        self._step()
        self._names.append(name)

    def _scalar(self) -> JsonValue:
        start = self._peek()
        if start in ('"', "'"):
            return self._string()
        if start.isalpha() or self._text[self._position + 1 : self._position + 2].isalpha():
            word = _WORD.match(self._text, self._position)
            if word is not None:
                self._position = word.end()
                return _CONSTANTS[word.group().lower().removeprefix("+")]
        return self._number()

    def _number(self) -> int | float:
        start = self._position
        hexadecimal = _HEX.match(self._text, start)
        if hexadecimal is not None:
            self._position = hexadecimal.end()
            return _hex_value(hexadecimal, start)
        match = self._take(_DECIMAL, "no value")
        fraction = match.group(1) or match.group(2) or "."
        if fraction == "." and match.group(3) is None:
            digits = match.group().rstrip(".")
            # A longer one does not fit into 64 bits, and Python cannot convert very long ones.
            if len(digits.lstrip("+-0")) <= _MAX_INT_DIGITS:
                return int(digits)
        return float(match.group())

    def _string(self) -> str:
        start = self._position
        body = self._take(_STRINGS[self._peek()], "no end of the string").group(1)
        if "\\" not in body:
            return body
        return _ESCAPE.sub(lambda escape: _unescaped(escape, start), body)

    def _take(self, pattern: re.Pattern[str], otherwise: str) -> re.Match[str]:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise _not_json(otherwise, self._position)
        self._position = match.end()
        return match

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _step(self) -> None:
        self._position += 1
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._position)
        if match is not None:
            self._position = match.end()


def _closing(container: list[JsonValue] | dict[str, JsonValue]) -> str:
    return "]" if isinstance(container, list) else "}"


def _hex_value(match: re.Match[str], position: int) -> int | float:
    sign = -1 if match.group(1) == "-" else 1
    whole, fraction = match.group(2), match.group(3)
    if max(len(whole.lstrip("0")), len((fraction or "").lstrip("0"))) > _MAX_HEX_DIGITS:
        raise _not_json("a hexadecimal number of more than 128 bits", position)
    if fraction is None:
        return sign * int(whole, 16)
    return sign * (float(int(whole, 16)) + float(int(fraction, 16)) / 16.0 ** len(fraction))


def _unescaped(match: re.Match[str], position: int) -> str:
    """Decode one escape sequence, or one pair of surrogates."""
    simple = match.group(7)
    if simple is not None:
        if simple not in _SIMPLE_ESCAPES:
            raise _not_json(f"the unknown escape \\{simple}", position)
        return _SIMPLE_ESCAPES[simple]
    codes = [code for code in match.groups()[:6] if code is not None]
    try:
        return bytes.fromhex("".join(codes)).decode("utf-16-be")
    except UnicodeDecodeError:
        # Half a surrogate pair is kept as it was written.
        return "".join(f"\\u{code}" for code in codes)
