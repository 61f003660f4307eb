"""`lancelake clone`: clone a version of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, stderr
from lancelake.cli.options import At, Message, Output, StorageOptions, Uri, location
from lancelake.cli.report import report, target_text, version_body, version_rows
from lancelake.commit.versions import has_table
from lancelake.errors import AlreadyExistsError
from lancelake.storage.location import Location
from lancelake.table.clone import deep_clone, shallow_clone
from lancelake.table.publish import CommitChoices

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def clone(
    uri: Uri,
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", show_default=False, help="Path or URI of the clone."),
    ],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep/--shallow",
            help="Copy all files, or refer to those of the original, which must then be kept.",
        ),
    ] = False,
    at: At = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Clone a version of a table."""
    source = open_at(location(uri, options), at)
    place = location(target, options)
    _ensure_free(place)
    choices = CommitChoices(message=message)
    if deep:
        with stderr().status("copying files"):
            made = deep_clone(source, place, choices)
    else:
        made = shallow_clone(source, place, choices)
    kind = "deep" if deep else "shallow"
    origin = target_text(source.branch, source.version)
    body = {
        **version_body(made),
        "kind": kind,
        "source": {
            "uri": source.location.uri,
            "branch": source.branch,
            "version": source.version,
        },
    }
    of = words.printable(f"version {origin} of {source.main_location.uri}")
    report(output, body, [*version_rows(made), (kind, of)])


def _ensure_free(place: Location) -> None:
    """Refuse an existing target before anything is copied."""
    if has_table(place):
        raise AlreadyExistsError("the target is already a table", table=place.uri)
