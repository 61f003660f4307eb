"""Manifest entry of an existing data file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.data.codec.lance_file import load_layout
from lancelake.data.codec.readers import open_reader
from lancelake.data.file_schema import column_ids
from lancelake.data.schema_check import ensure_fits
from lancelake.errors import ObjectNotFoundError, SchemaMismatchError, UnsupportedError
from lancelake.format import file_version
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile
from lancelake.format.ids import BaseId
from lancelake.format.schema import Field, Schema
from lancelake.storage.table_files import FileAt, TableFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """Content of a file: columns of the table, matched by name, and its row count."""

    entry: DataFile
    schema: Schema
    rows: int


def found_file(
    files: TableFiles, path: str, table: Schema, base_id: BaseId | None = None
) -> FoundFile:
    """Read the metadata of a data file, whose columns must be in the table."""
    draft = DataFile(
        path=path, fields=(), file_major_version=0, file_minor_version=0, base_id=base_id
    )
    place = files.data_file(draft)
    size_bytes = _size(place)
    facts = open_reader(place, None).facts()
    version = file_version.from_numbers(facts.major, facts.minor)
    if version is FileVersion.LEGACY:
        raise UnsupportedError(f"{path} is a legacy data file, which has no column metadata")
    schema = _held(table, facts.schema)
    ids = column_ids(schema, version)
    major, minor = version.numbers
    entry = replace(
        draft,
        fields=ids,
        column_indices=tuple(range(len(ids))),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=size_bytes,
    )
    layout = load_layout(place, replace(entry, column_indices=()))
    if layout.has_gaps:
        entry = replace(entry, column_indices=tuple(column.index for column in layout.columns))
    return FoundFile(entry=entry, schema=schema, rows=facts.rows)


def _size(place: FileAt) -> int:
    try:
        return place.store.head(place.path).size_bytes
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(f"Not found: {place.uri}", path=place.path) from error


def _held(table: Schema, stored: pa.Schema) -> Schema:
    """Return the fields of a file, in file order."""
    required = {field.name for field in stored}
    required_fields = replace(table, fields=tuple(f for f in table.fields if f.name in required))
    matched = {field.name: field for field in ensure_fits(required_fields, stored).fields}
    for field in stored:
        _ensure_same_order(matched[field.name], field.type)
    return replace(table, fields=tuple(matched[field.name] for field in stored))


def _ensure_same_order(field: Field, dtype: pa.DataType) -> None:
    """Raise for fields in another order than in the table, because columns are stored by order."""
    if pa.types.is_struct(dtype):
        names = [member.name for member in dtype]
        if names != [child.name for child in field.children]:
            expected = ", ".join(child.name for child in field.children)
            raise SchemaMismatchError(
                f"fields of {field.name} are in another order: {', '.join(names)}",
                expected=expected,
            )
        for child, member in zip(field.children, dtype, strict=True):
            _ensure_same_order(child, member.type)
    elif field.children and pa.types.is_nested(dtype) and not pa.types.is_map(dtype):
        _ensure_same_order(field.children[0], dtype.value_type)
