"""Findings of a check: the violated rule, its location and the recommended action."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Severity of a finding.

    An error violates the format: rows are lost, wrong or unreadable for some reader. A warning
    works today but needs attention. An info is harmless.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violated rule; `code` is stable, the texts are not."""

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
