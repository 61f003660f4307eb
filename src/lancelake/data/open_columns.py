"""Opening of data files with the reader of their version."""

from __future__ import annotations

from lancelake.data.byte_source import StoreSource
from lancelake.data.codec.lance_file import load_layout, open_lance_columns
from lancelake.data.codec.readers import open_reader
from lancelake.data.column_reader import ColumnReader
from lancelake.data.legacy.file import LegacyFile
from lancelake.data.projection import FileProjection
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt, TableFiles


def open_columns(
    files: TableFiles, part: FileProjection, manifest: FileAt, *, raw_text: bool = False
) -> tuple[ColumnReader, ...]:
    """Open the projected columns of one file, in one or more readers.

    With `raw_text`, strings are returned as stored, even if they are not UTF-8; strings of
    legacy files are always checked.
    """
    place = files.data_file(part.file)
    if part.file.version is FileVersion.LEGACY:
        dictionaries = StoreSource(open_store(manifest.root), manifest.path)
        source = StoreSource(open_store(place.root), place.path)
        return (LegacyFile.open(source, part.file, part.fields, manifest=dictionaries),)
    return open_lance_columns(place, part.file, part.fields, raw_text=raw_text)


def stored_rows(files: TableFiles, file: DataFile) -> int:
    """Count the rows of a data file by opening it."""
    place = files.data_file(file)
    if file.version is FileVersion.LEGACY:
        source = StoreSource(open_store(place.root), place.path)
        return LegacyFile.open(source, file, (), manifest=None).num_rows
    return open_reader(place, None).num_rows()


def column_sizes(files: TableFiles, file: DataFile) -> dict[int, int]:
    """Return the size of each column of a data file by index; empty for legacy files."""
    if file.version is FileVersion.LEGACY:
        return {}
    place = files.data_file(file)
    reader = open_reader(place, None)
    sizes = reader.column_sizes()
    columns = load_layout(place, file, reader).columns
    return {c.index: sum(sizes[c.index : c.index + c.width]) for c in columns}
