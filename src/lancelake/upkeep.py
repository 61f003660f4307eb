"""What follows a commit: a key index brought up to date, a due cleanup, a MemWAL retired.

Programs that only read never load the modules that build indices and delete files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake import events

if TYPE_CHECKING:
    from lancelake.table.publish import Committed


def install() -> None:
    """Let upkeep follow every commit."""
    events.add_commit_step(update_key_index)
    events.add_commit_step(clean_up_if_due)
    events.add_commit_step(retire_wal_if_replaced)


def update_key_index(committed: Committed) -> None:
    """Bring the key index of a table up to date, if it has one."""
    from lancelake.table.config import KEY_INDEX, from_config  # noqa: PLC0415

    config = committed.snapshot.manifest.config
    settings = from_config(config) if KEY_INDEX in config else None
    if settings is None:
        return
    from lancelake.table.index import refresh  # noqa: PLC0415
    from lancelake.table.publish import CommitChoices  # noqa: PLC0415

    choices = CommitChoices(
        lock=committed.lock,
        after=events.commit_steps_except(update_key_index),
    )
    refresh.update_key_index(committed.snapshot, settings, choices)


def clean_up_if_due(committed: Committed) -> None:
    """Remove old versions, if the table's settings say that it is time."""
    from lancelake.table.publish import INTERVAL  # noqa: PLC0415

    if INTERVAL in committed.snapshot.manifest.config:
        from lancelake.maintenance.cleanup import run  # noqa: PLC0415

        run.clean_up_if_due(committed.snapshot)


def retire_wal_if_replaced(committed: Committed) -> None:
    """Retire the regions of a table whose MemWAL a commit ended."""
    from lancelake.format.operations import CreateIndex, Overwrite, Restore  # noqa: PLC0415

    if isinstance(committed.operation, CreateIndex | Overwrite | Restore):
        from lancelake.memwal import setup  # noqa: PLC0415

        setup.retire_if_replaced(committed)
