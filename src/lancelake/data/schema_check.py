"""Schema check of data to write against a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.errors import CorruptTableError, SchemaMismatchError, UnsupportedError
from lancelake.format import extension_types, logical_types
from lancelake.format.column_path import join_path
from lancelake.format.extension_names import ARROW_JSON, EXTENSION_NAME, JSON
from lancelake.format.schema import Field, Schema

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
    found = match_schema(table, data, casts=casts)
    if found.extra:
        names = ", ".join(field.name for field in found.extra)
        raise SchemaMismatchError(
            "Append with different schema: the data has columns that the table does not have: "
            f"{names}",
            path=found.extra[0].name,
            found=str(found.extra[0].type),
            action="Omit them, or add them to the table first.",
        )
    return found.schema


def match_schema(table: Schema, data: pa.Schema, *, casts: bool = False) -> SchemaMatch:
    """Like `ensure_fits`, but return top-level columns that the table does not have."""
    known = set(table.names)
    extra = tuple(field for field in data if field.name not in known)
    _ensure_unique(data.names, ())
    shared = [field for field in data if field.name in known]
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
            raise SchemaMismatchError(
                f"column {_shown(here)} of type {field.logical_type} is missing from the data, "
                "and it cannot be null",
                path=_shown(here),
                expected=field.logical_type,
            )
    for name, field in by_name.items():
        where = _shown((*path, name))
        raise SchemaMismatchError(
            f"column {where} of type {field.type} is not in the table",
            path=where,
            found=str(field.type),
        )
    return tuple(matched)


def _matched(table: Field, data: pa.Field, path: tuple[str, ...], *, casts: bool) -> Field:
    dtype, metadata = extension_types.opened(data)
    extension = metadata.get(EXTENSION_NAME.encode(), b"").decode()
    found = "json" if _is_json(dtype, extension) else _logical_type(dtype, path)
    if table.is_blob_v2:
        return _matched_blob(table, dtype, found, path)
    if found == _expected(table) or (casts and _may_be_cast(table, dtype, found)):
        return _with_matched_children(table, dtype, path, casts=casts)
    raise _mismatch(table, found, path)


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
        raise CorruptTableError(problem, path=_shown(path))
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
        raise SchemaMismatchError(
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


def _matched_blob(table: Field, dtype: pa.DataType, found: str, path: tuple[str, ...]) -> Field:
    """Check blob values to write, whose fields may differ from those in the table."""
    if pa.types.is_struct(dtype) and {"data", "uri"} <= set(dtype.names):
        return table
    raise _mismatch(table, found, path)


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
    except UnsupportedError as error:
        where = _shown(path)
        msg = f"column {where} has type {dtype}, which the Lance format does not support"
        raise SchemaMismatchError(
            msg, path=where, found=str(dtype), action="Cast the column to another type."
        ) from error


def _may_be_cast(table: Field, dtype: pa.DataType, found: str) -> bool:
    if found == "null":
        return table.nullable
    if table.is_json:
        return found in {"string", "large_string"}
    expected = table.logical_type
    if expected in {"struct", "map"}:
        return False
    if expected.startswith(("list", "large_list", _FIXED_SIZE_STRUCTS)):
        return found.startswith(("list", "large_list", "fixed_size_list:"))
    return found not in {"struct", "map", "json"} and not _is_list_of_structs(dtype)


def _is_list_of_structs(dtype: pa.DataType) -> bool:
    return pa.types.is_nested(dtype) and any(
        pa.types.is_struct(dtype.field(i).type) for i in range(dtype.num_fields)
    )


def _ensure_item_name(child: Field, item: pa.Field, path: tuple[str, ...]) -> None:
    if child.name != item.name:
        where = _shown(path)
        raise SchemaMismatchError(
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
    raise SchemaMismatchError(f"the data has two columns {where}", path=where)


def _mismatch(table: Field, found: str, path: tuple[str, ...]) -> SchemaMismatchError:
    where = _shown(path)
    return SchemaMismatchError(
        f"Append with different schema: column {where} has type {table.logical_type} in the "
        f"table and {found} in the data",
        path=where,
        expected=table.logical_type,
        found=found,
    )


def _shown(path: tuple[str, ...]) -> str:
    return join_path(path)
