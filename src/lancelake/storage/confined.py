"""Validation of relative paths: they must stay below a table's root."""

from __future__ import annotations

import re
from urllib.parse import unquote

from lancelake.errors import CorruptTableError, InvalidRequestError

# Without control characters, and neither empty nor `.` nor `..`. Possessive, for speed: every
# call of a store checks its path.
_NAME = r"(?!\.\.?(?:/|\Z))[^/\x00-\x1f\x7f]++"
_PLAIN = re.compile(rf"{_NAME}(?:/{_NAME})*+")
# Names of writers, which are the same in every encoding.
_ORDINARY = re.compile(r"[0-9A-Za-z_][-.0-9A-Za-z_]*+")
_DRIVE = re.compile(r"[A-Za-z]:")
_MOST_LAYERS = 8


def confined_path(relative: str) -> str:
    """Return a path of a table's metadata, or raise for one that could leave the root."""
    if _ORDINARY.fullmatch(relative):
        return relative
    for reading in _readings(relative):
        if not is_plain(reading.replace("\\", "/")) or _DRIVE.match(reading) or "://" in reading:
            raise CorruptTableError(f"path {relative!r} leaves the table", path=relative)
    if "\\" in relative:
        raise CorruptTableError(f"path {relative!r} has a backslash", path=relative)
    return relative


def is_plain(path: str) -> bool:
    """True for non-empty names joined by `/`, none of them `.` or `..`."""
    return _PLAIN.fullmatch(path) is not None


def ensure_plain(path: str) -> None:
    """Raise for a path that is not plain, which is an error of the caller."""
    if _PLAIN.fullmatch(path) is None:
        raise InvalidRequestError(f"not a relative object path: {path!r}", path=path)


def _readings(path: str) -> list[str]:
    """Return the path as written and after each possible percent-decoding."""
    readings = [path]
    while (decoded := unquote(readings[-1])) != readings[-1]:
        readings.append(decoded)
        if len(readings) > _MOST_LAYERS:
            raise CorruptTableError(f"path {path!r} is percent-encoded too often", path=path)
    return readings
