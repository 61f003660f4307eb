"""MemWAL: durable upserts to a log next to the table, merged into it later."""

from __future__ import annotations

from lancelake.table import commit_hooks
from lancelake.table.commit_hooks import Committed


def _retire_if_replaced(made: Committed) -> None:
    # Few tables have a MemWAL; programs that only read and append do not load its modules.
    from lancelake.format.operations import CreateIndex, Overwrite, Restore  # noqa: PLC0415

    if isinstance(made.operation, CreateIndex | Overwrite | Restore):
        from lancelake.memwal.retire import retire_if_replaced  # noqa: PLC0415

        retire_if_replaced(made)


def follow_commits() -> None:
    """Retire the regions of a table when a commit of this process ends its MemWAL."""
    commit_hooks.install(_retire_if_replaced)
