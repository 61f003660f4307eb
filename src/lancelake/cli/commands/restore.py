"""`lancelake restore`: restore an old version."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat
from lancelake.cli.options import Message, Output, StorageOptions, Uri, location
from lancelake.cli.report import report, target_text, version_body, version_rows
from lancelake.table.publish import CommitChoices
from lancelake.table.restore import restore

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Back = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="WHEN",
        show_default=False,
        help="The version to restore: a version, TAG, BRANCH:VERSION, or a time such as "
        "2026-01-31T12:00.",
    ),
]


@app.command("restore")
def restore_command(
    uri: Uri,
    at: Back,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Restore an old version as the newest.

    The versions in between are kept. A version of a branch becomes the newest of that branch.
    """
    old = open_at(location(uri, options), at)
    made = restore(old, CommitChoices(message=message))
    origin = target_text(old.branch, old.version)
    body = {**version_body(made), "restored_version": old.version}
    report(output, body, [*version_rows(made), ("restored", f"version {origin}")])
