"""Parse times."""

from __future__ import annotations

from datetime import datetime

from lancelake.errors import InvalidRequestError


def to_datetime(when: object) -> datetime:
    """Parse a datetime, a pandas timestamp or ISO 8601 text; without a time zone it is local."""
    if isinstance(when, datetime):
        return when
    if isinstance(when, str):
        try:
            return datetime.fromisoformat(when.strip())
        except ValueError as error:
            problem = f"Failed to parse timestamp string {when}"
            action = "Write it like 2026-01-31 or 2026-01-31 18:30:00+00:00."
            raise InvalidRequestError(problem, action=action) from error
    raise TypeError(f"Unrecognized version timestamp {when} of type {type(when)}")
