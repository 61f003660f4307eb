"""Format numbers, sizes and times for people."""

from __future__ import annotations

import re
from datetime import datetime

from lancelake.format.words import plural as plural  # noqa: PLC0414  # for commands
from lancelake.format.words import size as size  # noqa: PLC0414  # for commands

VALUES_UNREAD = "values not read, use --data"
"""Note of a check that opens no data file."""

_SECOND_MS = 1000
_MINUTE_MS = 60_000
_AGES = (
    ("year", "y", 365 * 86400),
    ("month", "mo", 30 * 86400),
    ("day", "d", 86400),
    ("hour", "h", 3600),
    ("minute", "min", 60),
    ("second", "s", 1),
)
# Control characters, and those that change the direction of text or are invisible.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def number(count: int | None) -> str:
    """Format a count with separators; `?` if it is unknown."""
    return "?" if count is None else f"{count:,}"


def age(written_ns: int, now_ns: int, *, is_short: bool = False) -> str:
    """Format an age: `3 hours ago` (short: `3 h ago`), `in 2 days`, `just now`."""
    seconds = (now_ns - written_ns) / 1e9
    for unit, abbreviation, length in _AGES:
        count = int(abs(seconds) // length)
        if count:
            text = f"{count} {abbreviation}" if is_short else plural(count, unit)
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return "just now"


def duration(milliseconds: float) -> str:
    """Format a duration: `12 ms`, `3.99 s`, `2 min 5 s`."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds:.0f} ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / _SECOND_MS:.2f} s"
    minutes, rest = divmod(round(milliseconds / _SECOND_MS), 60)
    return f"{minutes:,} min {rest} s"


def moment(when: datetime) -> str:
    """Format a time in full, so that it selects its version."""
    return when.isoformat(sep=" ")


def printable(text: str) -> str:
    """Return text with terminal control characters escaped."""
    return _UNPRINTABLE.sub(lambda match: _SHORT.get(match[0], f"\\u{ord(match[0]):04x}"), text)


def shorten(text: str, most: int) -> str:
    """Truncate text to a number of characters."""
    return text if len(text) <= most else text[: max(0, most - 1)] + "…"
