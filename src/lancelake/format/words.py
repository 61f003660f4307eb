"""Numbers and durations as text."""

from __future__ import annotations

import re
from datetime import timedelta

_COUNT_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_ROUND_FROM = 100


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Format a number of bytes: `0 B`, `1.5 KiB`, `120 MiB`."""
    value = float(count)
    unit = 0
    while value >= _STEP and unit < len(_COUNT_UNITS) - 1:
        value /= _STEP
        unit += 1
    if unit == 0 or value >= _ROUND_FROM:
        return f"{value:.0f} {_COUNT_UNITS[unit]}"
    return f"{value:.1f} {_COUNT_UNITS[unit]}"


# Average years and months, as official tools define them.
_NAMED = (("year", 31_557_600), ("month", 2_630_016), ("day", 86_400))
_SHORT = (("h", 3_600), ("m", 60), ("s", 1))
_SECOND = 1_000_000_000
_UNITS = {
    "nanos nsec ns": 1,
    "usec us": 1_000,
    "millis msec ms": 1_000_000,
    "seconds second secs sec s": _SECOND,
    "minutes minute min mins m": 60 * _SECOND,
    "hours hour hr hrs h": 3_600 * _SECOND,
    "days day d": 86_400 * _SECOND,
    "weeks week wk wks w": 7 * 86_400 * _SECOND,
    "months month M": 2_630_016 * _SECOND,
    "years year yr yrs y": 31_557_600 * _SECOND,
}
_PART = re.compile(r"(\d+)\s*([a-zA-Z]+)\s*")


def duration_text(seconds: int) -> str:
    """Format seconds as years, months, days, hours, minutes and seconds: `1day 1h 30m`."""
    words: list[str] = []
    rest = seconds
    for name, size in _NAMED:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{name}{'s' if count > 1 else ''}")
    for name, size in _SHORT:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{name}")
    return " ".join(words) or "0s"


def parse_duration(text: str) -> timedelta:
    """Parse numbers with units, such as `2weeks 1day 12h`; the units are those of official tools.

    Raises `ValueError` for anything else, and for more than a `timedelta` can express.
    """
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        msg = f"{text!r} is not a duration such as 14days or 12h 30m"
        raise ValueError(msg)
    nanoseconds = sum(int(number) * _unit(unit, text) for number, unit in parts)
    try:
        return timedelta(microseconds=nanoseconds // 1000)
    except OverflowError as error:
        msg = f"{text!r} is longer than {timedelta.max.days} days"
        raise ValueError(msg) from error


def _unit(name: str, text: str) -> int:
    for names, size in _UNITS.items():
        if name in names.split():
            return size
    msg = f"{text!r} has the unknown unit {name!r}"
    raise ValueError(msg)
