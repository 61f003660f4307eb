"""Primary key constraints of SQL: the unenforced primary key of the table format."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, NotFoundError
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations.update_config import MapUpdate
from lancelake.format.primary_key import KEY, POSITION, key_names
from lancelake.format.schema import Schema
from lancelake.table.config import update_field_metadata
from lancelake.table.primary_key import declare_primary_key, key_entries
from lancelake.txn.metadata import with_field_metadata

_NAME = "lancelake:primary_key_name"
"""Field metadata of key columns: the name of the constraint."""

_UNNAMED = "primary_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryKey:
    """A primary key constraint: its name, and its columns in key order."""

    name: str
    columns: tuple[str, ...]


def primary_key(schema: Schema) -> PrimaryKey | None:
    """Return the primary key of a table; None without one."""
    names = key_names(schema)
    if not names:
        return None
    first = next(field for field in schema.fields if field.name == names[0])
    name = first.metadata.get(_NAME, _UNNAMED.encode())
    return PrimaryKey(name=name.decode(), columns=names)


def not_null(schema: t.StructType, key: PrimaryKey) -> t.StructType:
    """Return a schema in which the columns of a key are NOT NULL."""
    return t.StructType(
        [
            t.StructField(f.name, f.dataType, f.nullable and f.name not in key.columns, f.metadata)
            for f in schema.fields
        ]
    )


def with_primary_key(schema: Schema, key: PrimaryKey) -> Schema:
    """Declare the primary key of a new table."""
    ids = {field.name: field.id for field in schema.fields}
    updates = {
        ids[name]: MapUpdate(entries=FrozenMap(dict(entries)))
        for name, entries in key_entries(key.columns, {_NAME: key.name}).items()
    }
    return with_field_metadata(schema, updates)


def add_primary_key(base: Snapshot, key: PrimaryKey) -> Snapshot:
    """Declare the primary key of a table, whose columns must be NOT NULL."""
    own = primary_key(base.manifest.schema)
    if own is not None:
        raise InvalidRequestError(
            f"the table already has the primary key {own.name} ({', '.join(own.columns)})",
            table=base.location.uri,
            version=base.version,
            action=f"Drop it first: ALTER TABLE ... DROP CONSTRAINT {own.name}.",
        )
    try:
        return declare_primary_key(base, key.columns, {_NAME: key.name})
    except InvalidRequestError as error:
        column = error.facts.get("column")
        if column is not None:
            error.next_step = f"ALTER TABLE ... ALTER COLUMN {column} SET NOT NULL."
        raise


def drop_constraint(base: Snapshot, name: str, *, may_be_missing: bool) -> Snapshot:
    """Drop the primary key by its name; the columns stay NOT NULL."""
    own = primary_key(base.manifest.schema)
    if own is None or own.name.lower() != name.lower():
        if may_be_missing:
            return base
        known = "it has none" if own is None else f"it has {own.name}"
        raise NotFoundError(
            f"the table has no constraint {name}; {known}",
            table=base.location.uri,
            version=base.version,
        )
    gone = dict.fromkeys((KEY, POSITION, _NAME))
    return update_field_metadata(base, dict.fromkeys(own.columns, gone))
