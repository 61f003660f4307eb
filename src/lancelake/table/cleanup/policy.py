"""Cleanup policy: which versions are old, and how files are removed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lancelake.errors import InvalidRequestError

DEFAULT_AGE = timedelta(days=14)
"""Default age from which versions are removed."""

SAFE_AGE = timedelta(days=7)
"""Age from which unreferenced files cannot belong to a write in progress."""

_NANOSECONDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy:
    """Options of a cleanup. A version is removed only if every given condition allows it.

    `older_than`: it was committed longer ago. `retain_versions`: it is not among that many newest
    versions. `versions`: it is one of these, which is the only way to remove a detached version.
    Without any of the three, versions older than two weeks are removed. Never removed are the
    newest version, the version the cleanup starts from and later ones, tagged versions, and
    versions from which a branch was forked.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    """Remove unreferenced files of any age; only safe without concurrent writers."""

    error_if_tagged_old_versions: bool = False
    """Raise an error if a tag retains a version that would otherwise be removed, as pylance does by
    default.
    """

    delete_rate_limit: int | None = None
    """Maximum number of files deleted per second."""

    clean_referenced_branches: bool = False
    """Also clean up the branches of the table, before the main line."""

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        for name in ("retain_versions", "delete_rate_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problem = f"Cleanup error: {name} must be greater than 0, got {value}"
                raise InvalidRequestError(problem, found=value)
        if self.versions is not None and not self.versions:
            raise InvalidRequestError("versions must not be empty when specified")

    def before_ns(self, now_ns: int) -> int | None:
        """Return the time before which a version must have been committed to be removed."""
        age = self.older_than
        if age is None:
            if self.retain_versions is not None or self.versions is not None:
                return None
            age = DEFAULT_AGE
        return now_ns - nanoseconds(age)

    def unsafe_after_ns(self, now_ns: int) -> int:
        """Return the time after which an unreferenced file may belong to a write in progress."""
        return now_ns - nanoseconds(SAFE_AGE)


def safe_after_ns(modified_ns: int) -> int:
    """Return the time after which an unreferenced file cannot belong to a write in progress."""
    return modified_ns + nanoseconds(SAFE_AGE)


def nanoseconds(age: timedelta) -> int:
    """Return a duration as whole nanoseconds."""
    return age // timedelta(microseconds=1) * _NANOSECONDS
