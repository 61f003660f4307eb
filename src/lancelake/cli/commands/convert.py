"""Create a table from a folder of Parquet files or from a Delta table."""

from __future__ import annotations

from typing import Annotated

from lancelake.cli.console import OutputFormat
from lancelake.cli.options import CommandModule, Message, NamedTable, Output, argument
from lancelake.cli.source_files import StableRowIds
from lancelake.cli.write_run import write_sources
from lancelake.core.values.writes import CommitChoices, SchemaMode, WriteOptions, sources_of

commands = CommandModule()

Source = Annotated[str, argument("SOURCE", "Folder of Parquet files, or a Delta table.")]


@commands.add(example="sales/ sales.lance")
def convert(
    source: Source,
    at: NamedTable,
    stable_row_ids: StableRowIds = False,
    message: Message = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a table from a folder of Parquet files or from a Delta table.

    Folders such as day=1 become columns. Of a Delta table, the rows of its newest version are
    copied. The source is not changed.
    """
    place = at.place
    place.ensure_free()
    rows = sources_of(source, lambda uri: at.locate(uri).location)
    choices = CommitChoices(message=message, enable_stable_row_ids=stable_row_ids or None)
    options = WriteOptions(schema_mode=SchemaMode.MERGE, choices=choices)
    write_sources(None, place.location, rows, options, output)
