"""Commit rules of tables, from lancelake.txn."""

from __future__ import annotations

from lancelake.commit.rules import CommitRules
from lancelake.txn import build, migrations, registry


class _TableRules:
    """Implementation of `CommitRules` by lancelake.txn."""

    __slots__ = ()

    conflicts = staticmethod(registry.conflicts)
    rebase = staticmethod(registry.rebase)
    wanted = staticmethod(migrations.wanted)
    create = staticmethod(build.create)
    next_state = staticmethod(build.next_state)
    clone = staticmethod(build.clone)


TABLE_RULES: CommitRules = _TableRules()
