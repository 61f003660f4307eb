"""Table operations: snapshots, reads, writes, schema changes, refs and maintenance."""

from __future__ import annotations

from lancelake.table import commit_hooks
from lancelake.table.commit_hooks import Committed


def _update_key_index(made: Committed) -> None:
    # Few tables have a key index; the others do not load the modules that build indices.
    from lancelake.table.key_index_settings import from_config  # noqa: PLC0415

    settings = from_config(made.snapshot.manifest.config)
    if settings is None:
        return
    from lancelake.table.index.key_index import update_key_index  # noqa: PLC0415
    from lancelake.table.publish import CommitChoices, Surroundings  # noqa: PLC0415

    choices = CommitChoices(
        lock=made.lock,
        surroundings=Surroundings(clock=made.clock, ids=made.ids),
        after=commit_hooks.installed_except(_update_key_index),
    )
    update_key_index(made.snapshot, settings, choices)


def _clean_up_if_due(made: Committed) -> None:
    # Programs that only read do not load the modules that delete files.
    from lancelake.table.cleanup.auto import clean_up_if_due  # noqa: PLC0415

    clean_up_if_due(made.snapshot)


commit_hooks.install(_update_key_index)
commit_hooks.install(_clean_up_if_due)
