"""Times and durations, as in pylance."""

from __future__ import annotations

from datetime import datetime, timedelta

from lancelake.pylance._dataset.times import to_datetime

__all__ = ["sanitize_ts", "td_to_micros"]


def sanitize_ts(ts: datetime | str) -> datetime:
    """Parse a datetime, a pandas timestamp or ISO 8601 text."""
    return to_datetime(ts)


def td_to_micros(td: timedelta) -> int:
    """Return a duration in microseconds."""
    return round(td / timedelta(microseconds=1))
