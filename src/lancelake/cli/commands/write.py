"""Write files to a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import source_files
from lancelake.cli.console import OutputFormat
from lancelake.cli.options import Branch, CommandModule, Message, Output, StorageOptions, Uri
from lancelake.cli.tables import open_head, place_of
from lancelake.cli.write_run import write_sources
from lancelake.commit.snapshot import Snapshot, open_existing
from lancelake.core.table_place import TablePlace
from lancelake.core.values import writes
from lancelake.format.arrow_schema import public_schema
from lancelake.storage.location import Location
from lancelake.table.ingest.files import FOLDER_SUFFIXES, Sources, partition_columns
from lancelake.table.ingest.places import find_sources
from lancelake.table.publish import CommitChoices, OnceOnly

InvalidUtf8 = Annotated[
    str,
    typer.Option(
        "--invalid-utf8",
        metavar="error|replace",
        help="Refuse strings that are not UTF-8, or replace invalid bytes with U+FFFD.",
    ),
]
commands = CommandModule()

Mode = Annotated[
    writes.WriteMode,
    typer.Option(
        "--mode", help="Create a table that must not exist yet, append rows, or overwrite all rows."
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
        f"By default {writes.DEFAULT_VERSION.value}, or a newer one that the columns need.",
    ),
]
ReplaceWhere = Annotated[
    str | None,
    typer.Option(
        "--replace-where",
        metavar="SQL",
        show_default=False,
        help="Overwrite only the rows that match a condition, as all new rows must.",
    ),
]
TxnAppId = Annotated[
    str | None,
    typer.Option(
        "--txn-app-id",
        metavar="NAME",
        show_default=False,
        help="Application of an idempotent write; needs --txn-version.",
    ),
]
TxnVersion = Annotated[
    int | None,
    typer.Option(
        "--txn-version",
        min=0,
        show_default=False,
        help="Number of the write in its application; it is committed once.",
    ),
]
_NAMES = writes.OptionNames(
    stable_row_ids="--stable-row-ids", replaces="--replace-where", overwrite="--mode overwrite"
)


@commands.add(example="day-1.csv days.lance --mode append")
def write_command(
    sources: source_files.Source,
    uri: Uri,
    mode: Mode = writes.WriteMode.CREATE,
    format: source_files.Format = None,
    delimiter: source_files.Delimiter = None,
    partitions: source_files.Partitions = True,
    max_rows_per_file: MaxRows = writes.MAX_ROWS_PER_FILE,
    data_storage_version: DataVersion = None,
    stable_row_ids: source_files.StableRowIds = False,
    merge_schema: source_files.MergeSchema = False,
    invalid_utf8: InvalidUtf8 = writes.InvalidText.REFUSE.value,
    replace_where: ReplaceWhere = None,
    txn_app_id: TxnAppId = None,
    txn_version: TxnVersion = None,
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
    place = place_of(uri, options).location
    files = find_sources(
        sources, lambda source: place_of(source, options).location, FOLDER_SUFFIXES
    )
    base = _existing(place, branch)
    chosen = writes.WriteOptions(
        mode=mode,
        schema_mode=writes.SchemaMode.MERGE if merge_schema else writes.SchemaMode.STRICT,
        max_rows_per_file=max_rows_per_file,
        data_version=_data_version(data_storage_version),
        text=writes.chosen_text(invalid_utf8, "--invalid-utf8"),
        choices=CommitChoices(message=message, enable_stable_row_ids=stable_row_ids or None),
        once=OnceOnly.of(txn_app_id, txn_version, names=("--txn-app-id", "--txn-version")),
        replaces=None if replace_where is None else writes.RowsByFilter(condition=replace_where),
        names=_NAMES,
    )
    keeps_columns = mode is writes.WriteMode.APPEND or replace_where is not None
    types = public_schema(base.manifest.schema) if base is not None and keeps_columns else None
    reading = Sources(
        files=files,
        format=format,
        types=types,
        delimiter=delimiter,
        partitions=partition_columns([f.name for f in files]) if partitions else {},
    )
    write_sources(base, place, reading, chosen, output)


def _data_version(name: str | None) -> writes.FileVersion | None:
    return None if name is None else writes.version_from_name(name)


def _existing(place: Location, branch: str | None) -> Snapshot | None:
    """Open the table, which need not exist unless a branch is specified."""
    if branch is None:
        return open_existing(place)
    return open_head(TablePlace(place), branch).snapshot
