"""Files that a command takes rows from, and the options about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import pyarrow as pa

from lancelake.cli.options import NamedTable, argument, flag, option
from lancelake.core.values import writes

Delimiter = Annotated[
    str | None, option("--delimiter", "CHAR", "Delimiter of CSV files. By default, a comma.")
]
Partitions = Annotated[
    bool,
    flag("--partitions/--no-partitions", "Whether partition folders such as day=1 become columns."),
]

Source = Annotated[
    list[str],
    argument(
        "SOURCE",
        "Files, folders, patterns such as 'day-*.parquet' or objects such as s3://bucket/day; "
        "- for an Arrow stream on standard input.",
    ),
]
Format = Annotated[
    writes.SourceFormat | None,
    option("--format", None, "Format of the files, if it cannot be inferred from their names."),
]
MergeSchema = Annotated[bool, flag("--merge-schema", "Add columns that the table does not have.")]
StableRowIds = Annotated[bool, flag("--stable-row-ids", "Use stable row ids in a new table.")]


def read_files(
    names: Sequence[str],
    at: NamedTable,
    *,
    format: writes.SourceFormat | None,
    delimiter: str | None,
    has_partitions: bool,
    types: pa.Schema | None,
) -> writes.Sources:
    """Return the rows of files and folders; columns in `types` are cast to the types there.

    Objects are read with the storage options of the table.
    """
    files = writes.find_sources(names, lambda uri: at.locate(uri).location, writes.FOLDER_SUFFIXES)
    return writes.Sources(
        files=files,
        format=format,
        types=types,
        delimiter=delimiter,
        partitions=writes.partition_columns([file.name for file in files])
        if has_partitions
        else {},
    )
