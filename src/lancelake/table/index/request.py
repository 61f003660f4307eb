"""Request of an index: its column, kind, name and parameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    IndexExistsError,
    IndexNotFoundError,
    InvalidRequestError,
    UnsupportedError,
)
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import IdKind, IndexKind
from lancelake.index.registry import kind_named
from lancelake.index.stored_segment import indexed_type

_RESERVED = "__lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """An index to be built; without a name it is named after its column."""

    column: str
    kind: str
    name: str | None = None
    replace: bool = True
    train: bool = True
    fragment_ids: tuple[int, ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTarget:
    """A column of a version, and the kind of its index."""

    kind: IndexKind
    path: str
    field_id: FieldId
    dtype: pa.DataType


def resolve(base: Snapshot, request: IndexRequest) -> IndexTarget:
    """Find the column of a request, and refuse a kind that does not index it."""
    kind = kind_named(request.kind)
    target = column_target(base, request.column, kind)
    is_stable = base.manifest.has_stable_row_ids
    if is_stable and kind.stored_ids(0, has_stable_row_ids=True) is IdKind.ADDRESS:
        raise UnsupportedError(
            f"{kind.name} stores row addresses, and older releases of Lance would silently lose "
            "rows of a table with stable row ids",
            table=base.location.uri,
            action="Use BTREE or BITMAP.",
        )
    return target


def column_target(base: Snapshot, column: str, kind: IndexKind) -> IndexTarget:
    """Return a column as the target of an index of a kind."""
    schema = base.manifest.schema
    trail = schema.find(column)
    if trail is None or any(parent.logical_type != "struct" for parent in trail[:-1]):
        known = ", ".join(schema.names)
        problem = f"column {column!r} does not exist; the table has: {known}"
        raise ColumnNotFoundError(problem, table=base.location.uri, column=column)
    dtype = indexed_type(trail[-1])
    if not kind.accepts(dtype):
        problem = f"{kind.name} does not index column {column!r} of type {dtype}"
        raise ColumnTypeError(problem, table=base.location.uri, column=column)
    path = schema.path_of(trail[-1].id) or column
    return IndexTarget(kind=kind, path=path, field_id=trail[-1].id, dtype=dtype)


def chosen_name(base: Snapshot, request: IndexRequest, target: IndexTarget) -> str:
    """Return the name of a new index: the one that was asked for, or one that is free."""
    if request.name is not None:
        ensure_name(base, request.name)
        return request.name
    default = f"{target.path}_idx"
    numbered = (f"{default}_{number}" for number in itertools.count(2))
    taken = {i.name for i in base.indices if i.fields != (target.field_id,)}
    return next(name for name in itertools.chain([default], numbered) if name not in taken)


def ensure_name(base: Snapshot, name: str) -> None:
    """Refuse a name that no index may have."""
    if not name or name.startswith(_RESERVED):
        problem = f"{name!r} cannot be the name of an index"
        raise InvalidRequestError(problem, table=base.location.uri)


def replaced_entries(
    base: Snapshot, name: str, target: IndexTarget, *, replace: bool
) -> tuple[IndexMetadata, ...]:
    """Return the segments that a new index replaces."""
    found = tuple(i for i in base.indices if i.name == name)
    table = base.location.uri
    if any(i.fields != (target.field_id,) for i in found):
        problem = f"index {name!r} already exists with different fields"
        raise IndexExistsError(problem, table=table, action="Choose another name.")
    if found and not replace:
        problem = f"index {name!r} already exists"
        action = "Choose another name, or replace it."
        raise IndexExistsError(problem, table=table, action=action)
    return found


def entries_named(base: Snapshot, name: str) -> tuple[IndexMetadata, ...]:
    """Return the segments of an index; raise IndexNotFoundError if there are none."""
    found = tuple(i for i in base.indices if i.name == name and not i.is_system)
    if found:
        return found
    known = ", ".join(sorted({i.name for i in base.indices if not i.is_system})) or "none"
    problem = f'Index "{name}" not found; there are: {known}'
    raise IndexNotFoundError(problem, table=base.location.uri, version=base.version)


def chosen_fragments(base: Snapshot, wanted: tuple[int, ...] | None) -> BitMap:
    """Return the fragments that a request names, or all."""
    existing = BitMap(fragment.id for fragment in base.manifest.fragments)
    if wanted is None:
        return existing
    missing = sorted(set(wanted) - set(existing))
    if missing:
        problem = f"fragment {missing[0]} is not part of version {base.version}"
        raise InvalidRequestError(problem, table=base.location.uri, fragment=missing[0])
    return BitMap(wanted)
