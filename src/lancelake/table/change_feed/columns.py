"""Resolve columns of the last version in an older one: by id, or by name after an overwrite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.operations import Operation, Overwrite, Restore
from lancelake.format.schema import Field, Schema

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a field of the last version is in another version, or was when it last existed."""

    is_there: bool
    id: FieldId | None
    path: Path
    logical_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The last version's columns in another version.

    `schema` has the names and the structure of the last version with the ids and the types of this
    one; fields that it lacks have ids that no file contains. `unlike` are columns of another kind.
    """

    schema: Schema
    lacking: frozenset[FieldId]
    unlike: frozenset[str]
    traces: FrozenMap[FieldId, Trace]


def own_view(last: Schema) -> View:
    """Return the view of the last version itself."""
    traces = {
        field.id: Trace(is_there=True, id=field.id, path=path, logical_type=field.logical_type)
        for path, field in _paths(last)
    }
    return View(schema=last, lacking=frozenset(), unlike=frozenset(), traces=FrozenMap(traces))


def view_before(last: Schema, after: View, before: Schema, *, operation: Operation | None) -> View:
    """Return the view of the version before, given the operation between the two."""
    by_path = dict(_paths(before))
    path_of = {field.id: path for path, field in by_path.items()}
    traces = {}
    for number, trace in after.traces.items():
        found = _found(trace, path_of, by_path, after, operation)
        if found is not None:
            path = path_of[found]
            kind = by_path[path].logical_type
            traces[number] = Trace(is_there=True, id=found, path=path, logical_type=kind)
        else:
            known = None if isinstance(operation, Overwrite) else trace.id
            traces[number] = replace(trace, is_there=False, id=known)
    return _view(last, before, FrozenMap(traces))


def _found(
    trace: Trace,
    path_of: dict[FieldId, Path],
    by_path: dict[Path, Field],
    after: View,
    operation: Operation | None,
) -> FieldId | None:
    by_id = trace.id if trace.id in path_of else None
    named = by_path.get(trace.path)
    if not trace.is_there:
        # The id of a dropped column may be assigned again, but rarely with the same name.
        if named is None or named.id != trace.id or named.logical_type != trace.logical_type:
            return None
        return by_id
    by_name = None if named is None else named.id
    if isinstance(operation, Overwrite):
        return by_name
    if operation is None or isinstance(operation, Restore):
        # Ids may belong to columns that an overwrite between the two replaced.
        return by_id if by_name is None else by_name
    if by_id is not None or by_name is None:
        return by_id
    # A column of another type replaced one with the same name.
    replaced = all(t.id != by_name for t in after.traces.values())
    return by_name if replaced else None


def _view(last: Schema, before: Schema, traces: FrozenMap[FieldId, Trace]) -> View:
    by_id = before.by_id()
    fresh = max(last.max_field_id, before.max_field_id) + 1
    lacking: set[FieldId] = set()
    unlike: set[str] = set()

    def absent(field: Field) -> Field:
        unused = FieldId(fresh + field.id)
        lacking.add(field.id)
        return replace(field, id=unused, children=tuple(map(absent, field.children)))

    def seen(field: Field, top: str, parent: Field | None) -> Field:
        trace = traces[field.id]
        found = by_id.get(trace.id) if trace.is_there and trace.id is not None else None
        if found is None or (parent is not None and found not in parent.children):
            return absent(field)
        if not _is_castable(found, field):
            unlike.add(top)
            return absent(field)
        children = tuple(seen(child, top, found) for child in field.children)
        return replace(
            field,
            id=found.id,
            logical_type=found.logical_type,
            metadata=found.metadata if found.logical_type != field.logical_type else field.metadata,
            dictionary=found.dictionary,
            encoding=found.encoding,
            children=children,
        )

    fields = tuple(seen(field, field.name, None) for field in last.fields)
    return View(
        schema=replace(last, fields=fields),
        lacking=frozenset(lacking),
        unlike=frozenset(unlike),
        traces=traces,
    )


def _is_castable(found: Field, field: Field) -> bool:
    """Whether values of one field can be cast to another, as far as their types show."""
    if found.logical_type == field.logical_type:
        return _kind(found) == _kind(field)
    if found.children or field.children or _kind(found) != _kind(field):
        return False
    source, target = (storage_field(described(f)).type for f in (found, field))
    try:
        pa.array([], source).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _kind(field: Field) -> tuple[bool, bool, bool, bool, str | None]:
    blobs = field.is_blob_v1, field.is_blob_v2
    return (field.is_json, *blobs, field.is_packed, field.extension_name)


def _paths(schema: Schema) -> Iterator[tuple[Path, Field]]:
    for field in schema.fields:
        yield from _below((), field)


def _below(parents: Path, field: Field) -> Iterator[tuple[Path, Field]]:
    path = (*parents, field.name)
    yield path, field
    for child in field.children:
        yield from _below(path, child)
