"""`lancelake convert`: create a table from a Parquet folder or a Delta table."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli.console import OutputFormat
from lancelake.cli.options import Message, Output, StorageOptions, Uri, location
from lancelake.cli.sources.delta import read_delta
from lancelake.cli.sources.partitions import partition_columns
from lancelake.cli.sources.places import find_sources, is_delta
from lancelake.cli.sources.readers import FOLDER_SUFFIXES, SourceFormat
from lancelake.cli.sources.stream import Sources
from lancelake.cli.write_run import StableRowIds, write_sources
from lancelake.errors import InvalidRequestError
from lancelake.table.publish import CommitChoices, ensure_free
from lancelake.table.write import SchemaMode, WriteOptions

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", show_default=False, help="Folder of Parquet files, or a Delta table."
    ),
]


@app.command()
def convert(
    source: Source,
    uri: Uri,
    stable_row_ids: StableRowIds = False,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a table from a folder of Parquet files or from a Delta table.

    Folders such as day=1 become columns. Of a Delta table, the rows of its newest version are
    copied. The source is not changed.
    """
    place = location(uri, options)
    ensure_free(place)
    choices = CommitChoices(message=message, enable_stable_row_ids=stable_row_ids)
    chosen = WriteOptions(schema_mode=SchemaMode.MERGE, choices=choices)
    write_sources(None, place, _sources(source, options), chosen, output)


def _sources(source: str, options: list[str] | None) -> Sources:
    if is_delta(source, options):
        found = read_delta(source, options)
        if not found.files:
            raise InvalidRequestError("the Delta table has no rows", table=source)
        return Sources(files=found.files, format=SourceFormat.PARQUET, partitions=found.partitions)
    files = find_sources([source], options, FOLDER_SUFFIXES)
    return Sources(files=files, partitions=partition_columns([file.name for file in files]))
