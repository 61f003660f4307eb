"""What does a check tell? One broken rule, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad a finding is.

    An error contradicts the format: rows are lost, wrong or unreadable for some reader. A warning
    works today but deserves attention. An info is worth knowing and harmless.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule; `code` is stable, the sentences are not."""

    severity: Severity
    code: str
    message: str
    version: int | None = None
    branch: str | None = None
    path: str | None = None
    hint: str | None = None
    fragment: int | None = None
    column: str | None = None
    """Top-level column of the fragment."""
