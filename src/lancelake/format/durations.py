"""How are durations written in a table's config?"""

from __future__ import annotations

# A year and a month are averages, as the format's own tools take them.
_NAMED = (("year", 31_557_600), ("month", 2_630_016), ("day", 86_400))
_SHORT = (("h", 3_600), ("m", 60), ("s", 1))


def duration_text(seconds: int) -> str:
    """Write seconds as years, months, days, hours, minutes and seconds: `1day 1h 30m`."""
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
