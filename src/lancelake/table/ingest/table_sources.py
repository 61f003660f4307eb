"""What a new table is made from: a folder of files, or a Delta table."""

from __future__ import annotations

from lancelake.errors import InvalidRequestError
from lancelake.table.ingest.delta_log import read_delta
from lancelake.table.ingest.files import FOLDER_SUFFIXES, SourceFormat, Sources, partition_columns
from lancelake.table.ingest.places import Locate, find_sources, is_delta


def sources_of(source: str, locate: Locate) -> Sources:
    """Return the rows of the newest version of a Delta table, or of the files of a folder.

    Folders such as `day=1` are columns.
    """
    if is_delta(source, locate):
        delta = read_delta(source, locate)
        if not delta.files:
            raise InvalidRequestError("the Delta table has no rows", table=source)
        return Sources(files=delta.files, format=SourceFormat.PARQUET, partitions=delta.partitions)
    files = find_sources([source], locate, FOLDER_SUFFIXES)
    return Sources(files=files, partitions=partition_columns([file.name for file in files]))
