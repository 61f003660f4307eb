"""Show the columns, with ids, types and metadata."""

from __future__ import annotations

from rich.text import Text

from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Output, Version
from lancelake.cli.phrases import printable, shorten
from lancelake.cli.report import Listing, TextColumn, cut, facts, right
from lancelake.cli.rows import notes, tree, type_text

commands = CommandModule()

_METADATA_MOST = 200


@commands.add(example="photos.lance --at 1")
def schema(version: Version, output: Output = OutputFormat.TABLE) -> None:
    """Show the columns, with ids, types and metadata."""
    table = version.open()
    if output is OutputFormat.JSON:
        print_json(table.descriptions.schema())
        return
    columns = table.snapshot.manifest.schema
    listing = Listing([cut("column"), right("id"), cut("type"), TextColumn("nulls"), cut("notes")])
    for field, name in tree(columns):
        nulls = Text("yes", "dim") if field.nullable else Text("no")
        number = Text(str(field.id), "dim")
        listing.add(Text(name), number, Text(type_text(field), "green"), nulls, notes(field))
    console = stdout()
    console.print(listing)
    if columns.metadata:
        console.print()
        metadata = {k: printable(v.decode(errors="replace")) for k, v in columns.metadata.items()}
        console.print(
            facts((printable(k), shorten(v, _METADATA_MOST)) for k, v in sorted(metadata.items()))
        )
