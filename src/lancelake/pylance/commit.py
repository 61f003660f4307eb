"""Commit lock type and conflict error."""

from __future__ import annotations

from lancelake.core.values.writes import CommitLock
from lancelake.errors import ConflictError as CommitConflictError

__all__ = ["CommitConflictError", "CommitLock"]
