"""Whether the codec can store a schema, and in which file version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake import errors
from lancelake.data.arrays.conform import column_ids
from lancelake.data.blobs import BlobLimits
from lancelake.data.codec.lance_file import load_layout
from lancelake.data.codec.readers import open_reader
from lancelake.format import logical_types
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DEFAULT_VERSION, DataFile, FileVersion, version_from_numbers
from lancelake.format.ids import BaseId
from lancelake.format.logical_types import has_blobs
from lancelake.format.schema import ARROW_JSON, EXTENSION_NAME, JSON, Field, Schema, join_path
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
    version = version_from_numbers(facts.major, facts.minor)
    if version is FileVersion.LEGACY:
        raise errors.UnsupportedError(f"{path} is a legacy data file, which has no column metadata")
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
    except errors.ObjectNotFoundError as error:
        raise errors.ObjectNotFoundError(f"Not found: {place.uri}", path=place.path) from error


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
            raise errors.SchemaMismatchError(
                f"fields of {field.name} are in another order: {', '.join(names)}",
                expected=expected,
            )
        for child, member in zip(field.children, dtype, strict=True):
            _ensure_same_order(child, member.type)
    elif field.children and pa.types.is_nested(dtype) and not pa.types.is_map(dtype):
        _ensure_same_order(field.children[0], dtype.value_type)


_FIXED_SIZE_STRUCTS = "fixed_size_list:struct:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMatch:
    """Columns of the data: fields of the table in the table's order, and unknown columns."""

    schema: Schema
    extra: tuple[pa.Field, ...] = ()


def ensure_fits(table: Schema, data: pa.Schema, *, casts: bool = False) -> Schema:
    """Return the part of the table's schema that the data has, or raise for what does not fit.

    Columns and fields may come in any order; nullable ones may be missing. Types must be
    the same, or with `casts` convertible; metadata is ignored.
    """
    match = match_schema(table, data, casts=casts)
    if match.extra:
        names = ", ".join(field.name for field in match.extra)
        raise errors.SchemaMismatchError(
            "Append with different schema: the data has columns that the table does not have: "
            f"{names}",
            path=match.extra[0].name,
            found=str(match.extra[0].type),
            action="Omit them, or add them to the table first.",
        )
    return match.schema


def ensure_same_limits(table: Schema, data: pa.Schema) -> None:
    """Raise if data states other size limits of a blob column than the table has."""
    for column in filter(has_blobs, table.fields):
        place = data.get_field_index(column.name)
        stated_limits = (data.field(place).metadata if place >= 0 else None) or {}
        mine = BlobLimits.of(column)
        for name in ("inline", "dedicated", "pack-file"):
            key = f"lance-encoding:blob-{name}-size-threshold"
            limit = getattr(mine, name.replace("-", "_"))
            stated = stated_limits.get(key.encode())
            if stated is not None and stated != str(limit).encode():
                raise errors.InvalidRequestOSError(
                    f"Cannot append data with blob threshold metadata {key}={stated.decode()} for "
                    f"field {column.name!r}; the table has {limit}",
                    column=column.name,
                )


def match_schema(table: Schema, data: pa.Schema, *, casts: bool = False) -> SchemaMatch:
    """Like `ensure_fits`, but return top-level columns that the table does not have."""
    names = set(table.names)
    extra = tuple(field for field in data if field.name not in names)
    _ensure_unique(data.names, ())
    shared = [field for field in data if field.name in names]
    fields = _matched_members(table.fields, shared, (), casts=casts)
    return SchemaMatch(schema=replace(table, fields=fields), extra=extra)


def _matched_members(
    table: tuple[Field, ...], data: Sequence[pa.Field], path: tuple[str, ...], *, casts: bool
) -> tuple[Field, ...]:
    by_name = {field.name: field for field in data}
    matched: list[Field] = []
    for field in table:
        here = (*path, field.name)
        brought = by_name.pop(field.name, None)
        if brought is not None:
            matched.append(_matched(field, brought, here, casts=casts))
        elif not field.nullable:
            raise errors.SchemaMismatchError(
                f"column {_shown(here)} of type {field.logical_type} is missing from the data, "
                "and it cannot be null",
                path=_shown(here),
                expected=field.logical_type,
            )
    for name, field in by_name.items():
        where = _shown((*path, name))
        raise errors.SchemaMismatchError(
            f"column {where} of type {field.type} is not in the table",
            path=where,
            found=str(field.type),
        )
    return tuple(matched)


def _matched(table: Field, data: pa.Field, path: tuple[str, ...], *, casts: bool) -> Field:
    dtype, metadata = logical_types.opened(data)
    extension = metadata.get(EXTENSION_NAME.encode(), b"").decode()
    logical = "json" if _is_json(dtype, extension) else _logical_type(dtype, path)
    if table.is_blob_v2:
        return _matched_blob(table, dtype, logical, path)
    if logical == _expected(table) or (casts and _may_be_cast(table, dtype, logical)):
        return _with_matched_children(table, dtype, path, casts=casts)
    raise _mismatch(table, logical, path)


def _with_matched_children(
    table: Field, dtype: pa.DataType, path: tuple[str, ...], *, casts: bool
) -> Field:
    if not table.children or pa.types.is_null(dtype):
        return table
    if table.logical_type == "struct":
        return _matched_struct(table, dtype, path, casts=casts)
    (child,) = table.children
    here = (*path, child.name)
    if table.logical_type == "map":
        members = _matched_entries(child, dtype, here, casts=casts)
        return table.with_children((child.with_children(members),))
    if not pa.types.is_nested(dtype):
        problem = f"column {_shown(path)} of type {table.logical_type} has child fields"
        raise errors.CorruptTableError(problem, path=_shown(path))
    item = dtype.value_field
    if not casts and not table.logical_type.startswith(_FIXED_SIZE_STRUCTS):
        _ensure_item_name(child, item, path)
    return table.with_children((_matched(child, item, here, casts=casts),))


def _matched_struct(
    table: Field, dtype: pa.StructType, path: tuple[str, ...], *, casts: bool
) -> Field:
    _ensure_unique([field.name for field in dtype], path)
    children = _matched_members(table.children, list(dtype), path, casts=casts)
    if not children or (table.is_packed and len(children) < len(table.children)):
        raise errors.SchemaMismatchError(
            f"column {_shown(path)} has missing fields: the table has "
            f"{', '.join(child.name for child in table.children)}",
            path=_shown(path),
            found=str(dtype),
        )
    return table.with_children(children)


def _matched_entries(
    entries: Field, dtype: pa.MapType, path: tuple[str, ...], *, casts: bool
) -> tuple[Field, ...]:
    members = [dtype.key_field, dtype.item_field]
    if casts:
        # Names of a map's fields have no meaning, but official releases compare them.
        names = [child.name for child in entries.children]
        members = [field.with_name(name) for field, name in zip(members, names, strict=True)]
    return _matched_members(entries.children, members, path, casts=casts)


def _matched_blob(table: Field, dtype: pa.DataType, logical: str, path: tuple[str, ...]) -> Field:
    """Check blob values to write, whose fields may differ from those in the table."""
    if pa.types.is_struct(dtype) and {"data", "uri"} <= set(dtype.names):
        return table
    raise _mismatch(table, logical, path)


def _expected(table: Field) -> str:
    return "large_binary" if table.logical_type == "blob" else table.logical_type


def _is_json(dtype: pa.DataType, extension: str) -> bool:
    if extension == ARROW_JSON:
        return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))
    return bool(extension == JSON and pa.types.is_large_binary(dtype))


def _logical_type(dtype: pa.DataType, path: tuple[str, ...]) -> str:
    if pa.types.is_map(dtype):
        return "map"
    try:
        return logical_types.from_arrow(dtype)
    except errors.UnsupportedError as error:
        where = _shown(path)
        msg = f"column {where} has type {dtype}, which the Lance format does not support"
        raise errors.SchemaMismatchError(
            msg, path=where, found=str(dtype), action="Cast the column to another type."
        ) from error


def _may_be_cast(table: Field, dtype: pa.DataType, logical: str) -> bool:
    if logical == "null":
        return table.nullable
    if table.is_json:
        return logical in {"string", "large_string"}
    expected = table.logical_type
    if expected in {"struct", "map"}:
        return False
    if expected.startswith(("list", "large_list", _FIXED_SIZE_STRUCTS)):
        return logical.startswith(("list", "large_list", "fixed_size_list:"))
    return logical not in {"struct", "map", "json"} and not _is_list_of_structs(dtype)


def _is_list_of_structs(dtype: pa.DataType) -> bool:
    return pa.types.is_nested(dtype) and any(
        pa.types.is_struct(dtype.field(i).type) for i in range(dtype.num_fields)
    )


def _ensure_item_name(child: Field, item: pa.Field, path: tuple[str, ...]) -> None:
    if child.name != item.name:
        where = _shown(path)
        raise errors.SchemaMismatchError(
            f"items of column {where} are called {item.name!r} in the data "
            f"and {child.name!r} in the table",
            path=where,
            expected=child.name,
            found=item.name,
        )


def _ensure_unique(names: Sequence[str], path: tuple[str, ...]) -> None:
    if len(set(names)) == len(names):
        return
    twice = next(name for name in names if names.count(name) > 1)
    where = _shown((*path, twice))
    raise errors.SchemaMismatchError(f"the data has two columns {where}", path=where)


def _mismatch(table: Field, logical: str, path: tuple[str, ...]) -> errors.SchemaMismatchError:
    where = _shown(path)
    return errors.SchemaMismatchError(
        f"Append with different schema: column {where} has type {table.logical_type} in the "
        f"table and {logical} in the data",
        path=where,
        expected=table.logical_type,
        found=logical,
    )


def _shown(path: tuple[str, ...]) -> str:
    return join_path(path)


WRITABLE = (FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2)


def ensure_storable(
    schema: Schema, version: FileVersion, *, newest_readers_only: bool = False
) -> None:
    """Raise `UnsupportedError` for the first column that files of this version do not support."""
    ensure_writable(version)
    for trail in _trails(schema.fields):
        where = join_path(node.name for node in trail)
        _ensure_version_holds(trail, version, where)
        if not newest_readers_only:
            _ensure_release_4_reads(trail, version, where)


def ensure_writable(version: FileVersion) -> FileVersion:
    """Return a file version, or raise `UnsupportedError` for one that can only be read."""
    if version in WRITABLE:
        return version
    which = "legacy data files" if version is FileVersion.LEGACY else f"data files {version.value}"
    supported = ", ".join(writable.value for writable in WRITABLE)
    raise errors.UnsupportedError(
        f"tables with {which} can be read, but not written",
        found=version.value,
        action=f"Overwrite the table with another data storage version: {supported}.",
    )


def suitable(schema: Schema, version: FileVersion = DEFAULT_VERSION) -> FileVersion:
    """Return the version of new files, or a newer one for columns that it lacks."""
    newer = [version, *WRITABLE[WRITABLE.index(version) + 1 :]] if version in WRITABLE else []
    return next((each for each in newer if _holds(schema, each, newest_readers_only=True)), version)


def is_for_newest_readers(schema: Schema, version: FileVersion) -> bool:
    """Whether a table with this schema already has columns that not all releases can read."""
    return not _holds(schema, version)


def _holds(schema: Schema, version: FileVersion, *, newest_readers_only: bool = False) -> bool:
    try:
        ensure_storable(schema, version, newest_readers_only=newest_readers_only)
    except errors.UnsupportedError:
        return False
    return True


def _ensure_version_holds(trail: tuple[Field, ...], version: FileVersion, where: str) -> None:
    node = trail[-1]
    is_structural = version is FileVersion.V2_2
    if not is_structural and node.logical_type == "map":
        raise _needs_2_2(where, "a map", version)
    if not is_structural and node.logical_type.startswith("fixed_size_list:struct:"):
        raise _needs_2_2(where, "a fixed-size list of structs", version)
    if node.is_blob_v2:
        if not is_structural:
            raise _needs_2_2(where, "a blob v2 column (lance.blob.v2)", version)
        if any(parent.logical_type != "struct" for parent in trail[:-1]):
            msg = f"column {where} is a blob inside a list or a map, which cannot be written"
            action = "Use a column, or a field of a struct."
            raise errors.UnsupportedError(msg, column=where, action=action)
    if is_structural and node.is_blob_v1:
        msg = f"column {where} has blob encoding v1, which data files 2.2 do not support"
        action = 'Write with data_storage_version="2.1", or use the type lance.blob.v2.'
        raise errors.UnsupportedError(msg, column=where, action=action)


def _ensure_release_4_reads(trail: tuple[Field, ...], version: FileVersion, where: str) -> None:
    node = trail[-1]
    if _has_offset_zone(node):
        msg = f"column {where} has type {node.logical_type}, on which pylance 4 crashes"
        action = "Use a named time zone such as UTC."
        raise errors.UnsupportedError(msg, column=where, found=node.logical_type, action=action)
    if version.leaves_only and node.logical_type == "null" and _is_below_list(trail):
        msg = f"column {where} has type null inside a list, where pylance 4 loses rows"
        action = "Use another type."
        raise errors.UnsupportedError(msg, column=where, action=action)


def _is_below_list(trail: tuple[Field, ...]) -> bool:
    return any(node.logical_type.startswith(("list", "large_list", "map")) for node in trail)


def _has_offset_zone(node: Field) -> bool:
    if "timestamp:" not in node.logical_type:
        return False
    dtype = storage_field(node).type
    while pa.types.is_fixed_size_list(dtype):
        dtype = dtype.value_type
    return pa.types.is_timestamp(dtype) and ":" in (dtype.tz or "")


def _trails(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    for field in fields:
        yield (field,)
        if not field.is_blob_v2:
            for below in _trails(field.children):
                yield (field, *below)


def _needs_2_2(where: str, what: str, version: FileVersion) -> errors.UnsupportedError:
    msg = f"column {where} is {what}, which is not supported in data files {version.value}"
    return errors.UnsupportedError(
        msg, column=where, action='Write with data_storage_version="2.2".'
    )
