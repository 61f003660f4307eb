"""Findings of a check: a violation, and where it occurred."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Wrong(StrEnum):
    """What can be wrong with a history."""

    LOST_UPDATE = "lost update"
    DIRTY_READ = "dirty read"
    DUPLICATE_KEY = "duplicate key"
    RESURRECTED_ROW = "resurrected row"
    APPLIED_TWICE = "applied twice"
    FAILED_BUT_APPLIED = "failed but applied"
    UNEXPLAINED_CHANGE = "unexplained change"
    UNSTABLE_VERSION = "unstable version"
    VERSIONS_GO_BACK = "versions go back"
    WRONG_VERSION = "wrong version reported"
    WRONG_COUNT = "wrong count reported"
    WRONG_TOTAL = "wrong total"
    WRONG_COLUMN = "wrong column values"
    WRONG_FEED = "wrong change feed"
    WRONG_BRANCH = "wrong branch"
    WRONG_TAGS = "wrong tags"
    FAILED_READ = "failed read"
    MISSING_FILE = "missing file"
    READERS_DISAGREE = "readers disagree"
    UNSOUND_TABLE = "unsound table"
    CRUDE_ERROR = "crude error"
    CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that must not happen."""

    wrong: Wrong
    message: str
    version: int | None = None
    operations: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = "" if self.version is None else f" at version {self.version}"
        by = f" ({', '.join(self.operations)})" if self.operations else ""
        return f"{self.wrong}{place}: {self.message}{by}"
