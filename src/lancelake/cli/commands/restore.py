"""Restore an old version as the newest."""

from __future__ import annotations

from typing import Annotated

from lancelake.cli.console import OutputFormat
from lancelake.cli.options import CommandModule, Message, NamedTable, Output, option
from lancelake.cli.report import report_version, target_text
from lancelake.cli.tables import open_at
from lancelake.core.values.writes import CommitChoices

commands = CommandModule()

Back = Annotated[
    str,
    option(
        "--at",
        "WHEN",
        "The version to restore: a version, TAG, BRANCH:VERSION, or a time such as "
        "2026-01-31T12:00.",
    ),
]


@commands.add(example="photos.lance --at 1")
def restore_command(
    place: NamedTable, at: Back, message: Message = None, output: Output = OutputFormat.TABLE
) -> None:
    """Restore an old version as the newest.

    The versions in between are kept. A version of a branch becomes the newest of that branch.
    """
    table = open_at(place.place, at)
    old = table.snapshot
    restored = table.restore(CommitChoices(message=message))
    origin = target_text(old.branch, old.version)
    body = {"restored_version": old.version}
    report_version(output, restored, body, [("restored", f"version {origin}")])
