"""Values of config keys: numbers and truth values, checked when they are read."""

from __future__ import annotations

from lancelake.errors import InvalidRequestError

_MOST_DIGITS = 19
_TRUTHS = {"true": True, "false": False}


def number(key: str, text: str) -> int:
    """Return the non-negative number that a config key is set to."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise _wrong(key, text, "a non-negative number")
    return int(text)


def truth(key: str, text: str) -> bool:
    """Return the truth value that a config key is set to."""
    if text not in _TRUTHS:
        raise _wrong(key, text, "true or false")
    return _TRUTHS[text]


def _wrong(key: str, text: str, expected: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"config {key} is {text!r}, but must be {expected}",
        action="Correct the table's config, or remove the key.",
    )
