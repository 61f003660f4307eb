"""`lancelake schema`: show the columns of a table."""

from __future__ import annotations

import typer
from rich.text import Text

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.schema_text import notes, tree, type_text
from lancelake.cli.tables import Listing, TextColumn, cut, facts, right
from lancelake.cli.words import printable, shortened
from lancelake.table.describe.documents import schema_document

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_METADATA_MOST = 200


@app.command()
def schema(
    uri: Uri, at: At = None, options: StorageOptions = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show the columns, with ids, types and metadata."""
    snapshot = open_at(location(uri, options), at)
    found = snapshot.manifest.schema
    if output is OutputFormat.JSON:
        print_json(schema_document(snapshot))
        return
    table = Listing([cut("column"), right("id"), cut("type"), TextColumn("nulls"), cut("notes")])
    for field, name in tree(found):
        nulls = Text("yes", "dim") if field.nullable else Text("no")
        number = Text(str(field.id), "dim")
        table.add(Text(name), number, Text(type_text(field), "green"), nulls, notes(field))
    console = stdout()
    console.print(table)
    if found.metadata:
        console.print()
        shown = {k: printable(v.decode(errors="replace")) for k, v in found.metadata.items()}
        console.print(
            facts((printable(k), shortened(v, _METADATA_MOST)) for k, v in sorted(shown.items()))
        )
