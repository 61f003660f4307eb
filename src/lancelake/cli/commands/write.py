"""`lancelake write`: write files to a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat
from lancelake.cli.options import (
    Branch,
    Delimiter,
    Message,
    Output,
    Partitions,
    StorageOptions,
    Uri,
    location,
)
from lancelake.cli.sources.partitions import partition_columns
from lancelake.cli.sources.places import find_sources
from lancelake.cli.sources.readers import FOLDER_SUFFIXES, SourceFormat
from lancelake.cli.sources.stream import Sources
from lancelake.cli.write_run import StableRowIds, write_sources
from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.text import InvalidText, chosen_text
from lancelake.data.write_task import MAX_ROWS_PER_FILE
from lancelake.errors import InvalidRequestError
from lancelake.format import file_version
from lancelake.format.arrow_schema import public_schema
from lancelake.format.file_version import FileVersion
from lancelake.storage.location import Location
from lancelake.table.open import open_existing
from lancelake.table.publish import CommitChoices
from lancelake.table.write import SchemaMode, WriteMode, WriteOptions

InvalidUtf8 = Annotated[
    str,
    typer.Option(
        "--invalid-utf8",
        metavar="error|replace",
        help="Refuse strings that are not UTF-8, or replace invalid bytes with U+FFFD.",
    ),
]
app = typer.Typer(add_completion=False, rich_markup_mode=None)

Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        show_default=False,
        help="Files, folders, patterns such as 'day-*.parquet' or objects such as s3://bucket/day; "
        "- for an Arrow stream on standard input.",
    ),
]
Mode = Annotated[
    WriteMode,
    typer.Option(
        "--mode", help="Create a table that must not exist yet, append rows, or overwrite all rows."
    ),
]
Format = Annotated[
    SourceFormat | None,
    typer.Option(
        "--format",
        show_default=False,
        help="Format of the files, if it cannot be inferred from their names.",
    ),
]
MaxRows = Annotated[
    int, typer.Option("--max-rows-per-file", min=1, help="Maximum number of rows per data file.")
]
DataVersion = Annotated[
    str | None,
    typer.Option(
        "--data-storage-version",
        metavar="VERSION",
        show_default=False,
        help="Format of the data files of a created or overwritten table: 2.0, 2.1 or 2.2. "
        f"By default {file_version.DEFAULT.value}.",
    ),
]
MergeSchema = Annotated[
    bool, typer.Option("--merge-schema", help="Add columns that the table does not have.")
]


@app.command("write")
def write_command(
    sources: Source,
    uri: Uri,
    mode: Mode = WriteMode.CREATE,
    format: Format = None,
    delimiter: Delimiter = None,
    partitions: Partitions = True,
    max_rows_per_file: MaxRows = MAX_ROWS_PER_FILE,
    data_storage_version: DataVersion = None,
    stable_row_ids: StableRowIds = False,
    merge_schema: MergeSchema = False,
    invalid_utf8: InvalidUtf8 = InvalidText.REFUSE.value,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Write files to a table, in one version.

    Files are Parquet, CSV, TSV, JSON (lines or an array) or Arrow (file or stream), recognised by
    their names. Appended columns are cast to the types of the table; types of other text values are
    inferred from the first rows.
    """
    files = find_sources(sources, options, FOLDER_SUFFIXES)
    place = location(uri, options)
    base = _existing(place, branch)
    chosen = WriteOptions(
        mode=mode,
        schema_mode=SchemaMode.MERGE if merge_schema else SchemaMode.STRICT,
        max_rows_per_file=max_rows_per_file,
        data_version=_data_version(data_storage_version),
        text=chosen_text(invalid_utf8, "--invalid-utf8"),
        choices=CommitChoices(message=message, enable_stable_row_ids=stable_row_ids),
    )
    _ensure_kept(base, chosen)
    is_append = base is not None and mode is WriteMode.APPEND
    types = public_schema(base.manifest.schema) if base is not None and is_append else None
    reading = Sources(
        files=files,
        format=format,
        types=types,
        delimiter=delimiter,
        partitions=partition_columns([f.name for f in files]) if partitions else {},
    )
    write_sources(base, place, reading, chosen, output)


def _data_version(name: str | None) -> FileVersion | None:
    return None if name is None else file_version.from_name(name)


def _existing(place: Location, branch: str | None) -> Snapshot | None:
    """Open the table, which need not exist unless a branch is specified."""
    return open_existing(place) if branch is None else open_head(place, branch)


def _ensure_kept(base: Snapshot | None, options: WriteOptions) -> None:
    """Refuse options that conflict with fixed properties of the table."""
    if base is None or options.mode is WriteMode.CREATE:
        return
    if options.choices.enable_stable_row_ids and not base.manifest.has_stable_row_ids:
        problem = (
            "this table has no stable row ids, and they cannot be enabled for an existing table"
        )
        action = "Omit --stable-row-ids, or create a new table."
        raise InvalidRequestError(problem, table=base.location.uri, action=action)
