"""What guards a commit, and what does one raise when another was faster?"""

from __future__ import annotations

from lancelake.commit.locked import CommitLock
from lancelake.errors import ConflictError as CommitConflictError

__all__ = ["CommitConflictError", "CommitLock"]
