"""Names and folders in a directory namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lancelake.pylance._values.namespace_errors import InvalidInput

SUFFIX = ".lance"
_SEPARATOR = "$"
_PREFIX_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """Names in order, and the token of the next page."""

    names: list[str]
    token: str | None = None


def joined(parts: Sequence[str]) -> str:
    """Return the id of a table or a namespace in the manifest."""
    return _SEPARATOR.join(parts)


def folder_of(parts: Sequence[str], unique: str) -> str:
    """Return the folder of a new table; below a namespace its name begins with unique digits."""
    if len(parts) == 1:
        return f"{parts[0]}{SUFFIX}"
    return f"{unique[:_PREFIX_DIGITS]}_{joined(parts)}"


def names_below(ids: Iterable[str], parent: Sequence[str]) -> set[str]:
    """Return the last names of the ids directly below a namespace."""
    prefix = f"{joined(parent)}{_SEPARATOR}" if parent else ""
    rest = (each.removeprefix(prefix) for each in ids if each.startswith(prefix))
    return {name for name in rest if _SEPARATOR not in name}


def count_below(ids: Iterable[str], parent: Sequence[str]) -> int:
    """Return the number of ids anywhere below a namespace."""
    return sum(each.startswith(f"{joined(parent)}{_SEPARATOR}") for each in ids)


def page_of(names: Iterable[str], token: str | None, limit: int | None) -> Paged:
    """Return the names after the one that the token is, and at most as many as the limit."""
    left = sorted(name for name in names if token is None or name > token)
    if limit is None or len(left) <= limit:
        return Paged(names=left)
    return Paged(names=left[:limit], token=left[limit - 1])


def ensure_inside(location: str) -> None:
    """Refuse a location that is not a path below the root."""
    where = f"Location must be a relative path within the root directory: {location}"
    if "://" in location:
        problem = f"Absolute URIs are not allowed for register_table. {where}"
    elif location.startswith("/"):
        problem = f"Absolute paths are not allowed for register_table. {where}"
    elif ".." in location.split("/"):
        problem = f"Path traversal is not allowed. {where}"
    else:
        return
    raise InvalidInput(f"Invalid input: {problem}")
