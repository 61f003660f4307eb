"""Registering of base paths: ids, and checks for duplicates."""

from __future__ import annotations

from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format.bases import BasePath
from lancelake.format.ids import BaseId

__all__ = ["BasePath", "ensure_id", "extended", "same_path"]

_MAX_BASE_ID = (1 << 32) - 1


def extended(before: tuple[BasePath, ...], new: tuple[BasePath, ...]) -> tuple[BasePath, ...]:
    """Add bases; id 0 means the next free one. Paths, names and ids must be unique."""
    found = list(before)
    for base in new:
        _ensure_free(base, found)
        highest = max((b.id for b in found), default=0)
        found.append(base if base.id else replace(base, id=ensure_id(highest + 1)))
    return tuple(found)


def ensure_id(base_id: int) -> BaseId:
    """Return a valid id of a base path; raise if there are none left."""
    if base_id > _MAX_BASE_ID:
        raise InvalidRequestError(
            f"the table has no ids of base paths left: the highest is {_MAX_BASE_ID}"
        )
    return BaseId(base_id)


def same_path(base: BasePath, other: BasePath) -> bool:
    """Return whether two bases have the same location, however their paths are written."""
    return _place(base) == _place(other)


def _place(base: BasePath) -> str:
    return base.path.removeprefix("file://").rstrip("/")


def _ensure_free(base: BasePath, taken: list[BasePath]) -> None:
    for other in taken:
        if same_path(base, other):
            raise InvalidRequestError(f"base path {base.path} is already registered")
        # Bases without a name count as having the same one: official readers reject a second.
        if base.name == other.name:
            raise InvalidRequestError(f"base name {base.name!r} is taken", name=base.name)
        if base.id and base.id == other.id:
            raise InvalidRequestError(f"base id {base.id} is taken", id=base.id)
