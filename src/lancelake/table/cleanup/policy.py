"""Which versions are too old, and how careful is their removal?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lancelake.errors import InvalidRequestError

DEFAULT_AGE = timedelta(days=14)
"""Versions this old go when nothing else is said."""

SAFE_AGE = timedelta(days=7)
"""Files of no version that are this old cannot belong to a writer at work."""

_NANOSECONDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy:
    """What is asked for. A version goes only if all bounds that are given allow it.

    `older_than`: it was committed longer ago. `retain_versions`: it is not among the newest of so
    many. `versions`: it is one of these, the only way to name a detached one. Without any of the
    three, versions go that are older than two weeks. Nothing makes the newest version go, the one
    the cleanup starts from or later ones, versions with a tag, or those where a branch begins.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    """Remove files of no version however young they are: for when nobody writes."""

    error_if_tagged_old_versions: bool = True
    """Refuse to do anything when a tag keeps a version that would go."""

    delete_rate_limit: int | None = None
    """How many files may be deleted per second."""

    clean_referenced_branches: bool = False
    """Clean the branches of the table too, before the main line."""

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("retain_versions", "delete_rate_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problem = f"Cleanup error: {name} must be greater than 0, got {value}"
                raise InvalidRequestError(problem, found=value)
        if self.versions is not None and not self.versions:
            raise InvalidRequestError("versions must not be empty when specified")

    def before_ns(self, now_ns: int) -> int | None:
        """Return the time before which a version must have been committed to go."""
        age = self.older_than
        if age is None:
            if self.retain_versions is not None or self.versions is not None:
                return None
            age = DEFAULT_AGE
        return now_ns - nanoseconds(age)

    def unsafe_after_ns(self, now_ns: int) -> int:
        """Return the time after which a file of no version may belong to a writer at work."""
        return now_ns - nanoseconds(SAFE_AGE)


def nanoseconds(age: timedelta) -> int:
    """Return a duration as a whole number."""
    return age // timedelta(microseconds=1) * _NANOSECONDS
