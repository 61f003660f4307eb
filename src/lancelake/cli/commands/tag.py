"""List, create, move and delete tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, RowFormat
from lancelake.cli.options import CommandModule, NamedTable, Output, RowOutput, Version, argument
from lancelake.cli.report import (
    Listing,
    TextColumn,
    cut,
    print_listing,
    report,
    report_list,
    target_text,
)
from lancelake.core.values.descriptions import tag_document
from lancelake.core.values.versions import AtVersion, tag_time

if TYPE_CHECKING:
    from lancelake.core.table import Table
    from lancelake.core.values.versions import Tag

commands = CommandModule(
    "List, create, move and delete tags.", example="create photos.lance release-1"
)

Name = Annotated[str, argument("NAME", "Name of the tag.")]


@commands.add("list", example="photos.lance")
def list_command(at: NamedTable, output: RowOutput = RowFormat.TABLE) -> None:
    """List all tags."""
    table = at.place.open()
    tags = table.refs.tags()
    if output is not RowFormat.TABLE:
        items = [tag_document(name, tag) for name, tag in tags.items()]
        report_list(output, {"uri": table.snapshot.main_location.uri, "tags": items}, items)
        return
    listing = Listing([cut("tag"), TextColumn("version"), TextColumn("created", is_optional=True)])
    for name, tag in tags.items():
        version = target_text(tag.branch, tag.version)
        listing.add(phrases.printable(name), version, Text(_seconds(tag.created_at), style="dim"))
    print_listing(listing, phrases.plural(len(tags), "tag"))


@commands.add("create", example="photos.lance release-1 --at 1")
def create_command(version: Version, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Create a tag for a version, which protects it from cleanup."""
    table = version.open()
    tag = table.refs.create_tag(name, AtVersion(table.snapshot.version))
    _report(output, table, name, tag)


@commands.add("move", example="photos.lance launch --at 2")
def move_command(version: Version, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Move a tag to another version."""
    table = version.open()
    before = table.refs.tag(name)
    tag = table.refs.move_tag(name, AtVersion(table.snapshot.version))
    _report(output, table, name, tag, before)


@commands.add("delete", example="photos.lance launch")
def delete_command(at: NamedTable, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Delete a tag; the version is kept."""
    table = at.place.open()
    before = table.refs.tag(name)
    table.refs.remove_tag(name)
    body = {"uri": table.snapshot.main_location.uri, "deleted": tag_document(name, before)}
    was = f"was {target_text(before.branch, before.version)}"
    report(output, body, [("deleted", Text.assemble(phrases.printable(name), (f"  {was}", "dim")))])


def _report(
    output: OutputFormat, table: Table, name: str, tag: Tag, before: Tag | None = None
) -> None:
    former = None if before is None else tag_document(name, before)
    uri = table.snapshot.main_location.uri
    body = {"uri": uri, **tag_document(name, tag), "before": former}
    target = Text(target_text(tag.branch, tag.version))
    if before is not None:
        target.append(f"  was {target_text(before.branch, before.version)}", style="dim")
    report(output, body, [("tag", Text(phrases.printable(name), "bold cyan")), ("version", target)])


def _seconds(created_at: str | None) -> str:
    """Return the time of a tag in UTC, in seconds."""
    return "" if created_at is None else f"{tag_time(created_at):%Y-%m-%dT%H:%M:%S}"
