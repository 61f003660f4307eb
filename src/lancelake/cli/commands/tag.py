"""`lancelake tag`: list, create, move and delete tags."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, RowFormat, stdout
from lancelake.cli.options import (
    At,
    Output,
    RowOutput,
    StorageOptions,
    Uri,
    location,
    subcommands,
)
from lancelake.cli.report import report, report_list, target_text
from lancelake.cli.tables import Listing, TextColumn, cut
from lancelake.commit.snapshot import Snapshot
from lancelake.format.refs import Tag
from lancelake.table.describe.documents import tag_document
from lancelake.table.open import AtVersion
from lancelake.table.refs import list_tags, load_tag
from lancelake.table.tags import create_tag, move_tag, remove_tag

app = subcommands("List, create, move and delete tags.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the tag.")]


@app.command("list")
def list_command(
    uri: Uri, options: StorageOptions = None, output: RowOutput = RowFormat.TABLE
) -> None:
    """List all tags."""
    main = open_at(location(uri, options), None).main_location
    tags = list_tags(main)
    if output is not RowFormat.TABLE:
        items = [tag_document(name, tag) for name, tag in tags.items()]
        report_list(output, {"uri": main.uri, "tags": items}, items)
        return
    table = Listing([cut("tag"), TextColumn("version"), TextColumn("created", is_optional=True)])
    for name, tag in tags.items():
        version = target_text(tag.branch, tag.version)
        table.add(words.printable(name), version, Text(_day(tag.created_at), style="dim"))
    console = stdout()
    console.print(table)
    console.print(Text(words.plural(len(tags), "tag"), style="dim"))


@app.command("create")
def create_command(
    uri: Uri,
    name: Name,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a tag for a version, which protects it from cleanup."""
    snapshot = open_at(location(uri, options), at)
    tag = create_tag(snapshot, name, AtVersion(snapshot.version))
    _report(output, snapshot, name, tag)


@app.command("move")
def move_command(
    uri: Uri,
    name: Name,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Move a tag to another version."""
    snapshot = open_at(location(uri, options), at)
    before = load_tag(snapshot.main_location, name)
    tag = move_tag(snapshot, name, AtVersion(snapshot.version))
    _report(output, snapshot, name, tag, before)


@app.command("delete")
def delete_command(
    uri: Uri, name: Name, options: StorageOptions = None, output: Output = OutputFormat.TABLE
) -> None:
    """Delete a tag; the version is kept."""
    snapshot = open_at(location(uri, options), None)
    before = load_tag(snapshot.main_location, name)
    remove_tag(snapshot, name)
    body = {"uri": snapshot.main_location.uri, "deleted": tag_document(name, before)}
    was = f"was {target_text(before.branch, before.version)}"
    report(output, body, [("deleted", Text.assemble(words.printable(name), (f"  {was}", "dim")))])


def _report(
    output: OutputFormat, snapshot: Snapshot, name: str, tag: Tag, before: Tag | None = None
) -> None:
    former = None if before is None else tag_document(name, before)
    body = {"uri": snapshot.main_location.uri, **tag_document(name, tag), "before": former}
    target = Text(target_text(tag.branch, tag.version))
    if before is not None:
        target.append(f"  was {target_text(before.branch, before.version)}", style="dim")
    report(output, body, [("tag", Text(words.printable(name), "bold cyan")), ("version", target)])


def _day(created_at: str | None) -> str:
    """Return the time in seconds, as stored in the document."""
    return "" if created_at is None else words.printable(created_at.partition(".")[0])
