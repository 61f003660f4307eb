"""Convert the Java range of `CHANGES FROM ... TO ...`."""

from __future__ import annotations

from typing import Any

from lancelake.errors import InvalidRequestError
from lancelake.spark.reading.change_feed import Versions
from lancelake.table.change_feed.versions import Point
from lancelake.table.open import AsOf, AtVersion

_NET = "NET_CHANGES"


def changelog_versions(context: Any) -> Versions:
    """Return the requested versions, and whether only net changes are requested."""
    is_net = context.deduplicationMode().name() == _NET
    found = context.range()
    match str(found.getClass().getSimpleName()):
        case "VersionRange":
            end = _optional(found.endingVersion())
            return Versions(
                begin=_after(found.startingVersion(), found.startingBoundInclusive()),
                end=None if end is None else _until(end, found.endingBoundInclusive()),
                is_net=is_net,
            )
        case "TimestampRange":
            end = _optional(found.endingTimestamp())
            first = int(found.startingTimestamp())
            first -= 1 if found.startingBoundInclusive() else 0
            return Versions(
                begin=_time(first),
                end=None if end is None else _until_time(end, found.endingBoundInclusive()),
                is_net=is_net,
            )
        case _:
            return Versions(is_net=is_net)


def _optional(value: Any) -> Any:
    return value.get() if value.isPresent() else None


def _number(text: str) -> int:
    if not text.isdigit():
        raise InvalidRequestError(f"{text!r} is not a version number")
    return int(text)


def _after(text: str, is_inclusive: bool) -> Point:
    number = _number(text)
    return AtVersion(max(0, number - 1) if is_inclusive else number)


def _until(text: str, is_inclusive: bool) -> Point:
    number = _number(text)
    return AtVersion(number if is_inclusive else max(0, number - 1))


def _until_time(micros: int, is_inclusive: bool) -> Point:
    return _time(micros if is_inclusive else micros - 1)


def _time(micros: int) -> Point:
    return AsOf(micros * 1000)
