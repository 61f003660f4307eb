"""Parse references to versions."""

from __future__ import annotations

from typing import TypeAlias

from lancelake.errors import InvalidRequestError
from lancelake.table.open import AtTag, AtVersion, Latest, OnBranch, Reference

VersionLike: TypeAlias = int | str | tuple[str | None, int | None]


def reference(version: VersionLike | None) -> Reference:
    """Parse a number, a tag, or a branch with a number; None is the newest version."""
    match version:
        case None:
            return Latest()
        case bool():
            raise InvalidRequestError("version must be an integer or a string.")
        case int():
            return AtVersion(version)
        case str():
            return AtTag(version)
        case (str() | None as branch, int() | None as number):
            return OnBranch(branch, number)
        case _:
            raise InvalidRequestError("version must be an integer or a string.")
