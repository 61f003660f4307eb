"""Changing columns: names, types, nullability, removal, new fields of structs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import struct_of
from lancelake.data.arrays.conform import rebuilt_list, tightened
from lancelake.data.schema_check import ensure_fits, ensure_storable, is_for_newest_readers
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.expr.literals import type_name
from lancelake.format import evolution
from lancelake.format.arrow_schema import from_arrow, public_schema, storage_field, storage_schema
from lancelake.format.evolution import Alteration, Altered, Growth
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import Project
from lancelake.format.schema import Field, Schema, join_path
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.columns.add import add_null_columns, live_batches
from lancelake.table.columns.backfill import (
    Backfill,
    ColumnPlan,
    ColumnTask,
    column_file,
    default_engine,
)
from lancelake.table.publish import (
    DEFAULT,
    DEFAULT_CHOICES,
    CommitChoices,
    publish,
    retry_on_newest,
)

# Precision may be lost, as in official releases; a number that does not fit is an error.
_OPTIONS = {
    "allow_time_truncate": True,
    "allow_float_truncate": True,
    "allow_decimal_truncate": True,
}

# The value that Arrow names in its error.
_REFUSED = re.compile(r"value (\S+?)'? (?:not in range|truncated|was truncated)")


def ensure_castable(field: Field, target: pa.DataType, path: str) -> None:
    """Raise an error unless both types are of the same kind."""
    dtype = storage_field(field).type
    if field.is_json or field.is_blob_v1 or field.is_blob_v2 or not _same_kind(dtype, target):
        kinds = f"{_type_name(field, dtype)} to {type_name(target) or target}"
        msg = f'Cannot cast column "{path}" from {kinds}'
        action = "Add a column with an expression, and drop this one."
        raise UnsupportedError(msg, column=path, action=action)


def cast_column(array: pa.Array, before: Field, after: Field, path: str) -> pa.Array:
    """Cast a column; fields that exist on both sides are cast recursively."""
    if before.id != after.id:
        return _cast(array, storage_field(after).type, path)
    target = storage_field(after)
    children = [
        (cast_path(path, old), old, new)
        for old, new in zip(before.children, after.children, strict=True)
    ]
    if pa.types.is_struct(array.type):
        parts = [
            cast_column(array.field(i), old, new, where)
            for i, (where, old, new) in enumerate(children)
        ]
        return struct_of(parts, list(target.type), array)
    ((where, old, new),) = children
    tight = tightened(array)
    return rebuilt_list(tight, target.type, cast_column(tight.values, old, new, where))


def cast_path(path: str, child: Field) -> str:
    """Return the path of a child."""
    return f"{path}.{child.name}" if path else child.name


def _same_kind(dtype: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype) or pa.types.is_dictionary(target):
        return _same_kind(_words(dtype), _words(target))
    if _is_list(dtype) and _is_list(target):
        if pa.types.is_fixed_size_list(dtype) and pa.types.is_fixed_size_list(target):
            return bool(dtype.list_size == target.list_size) and _same_items(dtype, target)
        return _same_items(dtype, target)
    return any(kind(dtype) and kind(target) for kind in _KINDS)


def _same_items(dtype: pa.DataType, target: pa.DataType) -> bool:
    return _same_kind(dtype.value_type, target.value_type)


def _words(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _is_list(dtype: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_list(dtype) or kinds.is_large_list(dtype) or kinds.is_fixed_size_list(dtype)
    )


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _is_bytes(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype))


def _is_point_in_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or pa.types.is_time(dtype))


_KINDS = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_duration,
    _is_point_in_time,
    _is_text,
    _is_bytes,
)


def _cast(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_dictionary(target):
            words = pc.cast(array, options=_options(target.value_type))
            return words.dictionary_encode().cast(target)
        return pc.cast(_rounded(array, target), options=_options(target))
    except (pa.ArrowException, NotImplementedError) as error:
        name = type_name(target) or target
        value = _REFUSED.search(str(error))
        values = f"value {value[1]} to type {name}" if value else f"values to type {name}"
        raise SchemaMismatchError(
            f"Can't cast {values} in column {path}: {error}",
            path=path,
            expected=str(target),
            found=str(array.type),
            action="Choose a type that can hold all values.",
        ) from error


def _rounded(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Round decimals that lose digits, which a cast alone would truncate."""
    if not (pa.types.is_decimal(array.type) and pa.types.is_decimal(target)):
        return array
    if target.scale >= array.type.scale:
        return array
    return pc.round(array, ndigits=target.scale, round_mode="half_towards_infinity")


def _options(target: pa.DataType) -> pc.CastOptions:
    return pc.CastOptions(target, **_OPTIONS)


def _type_name(field: Field, dtype: pa.DataType) -> str:
    return field.logical_type if field.is_json else type_name(dtype) or str(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetypedValues(ABC):
    """Values of columns in another type."""

    before: Schema
    after: Schema

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return storage_schema(self.after)

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        schema = self.schema
        columns = list(zip(self.before.fields, self.after.fields, schema.types, strict=True))
        for batch in live_batches(scan, self.before):
            arrays = [
                self.retyped(array, *column)
                for array, column in zip(batch.columns, columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @abstractmethod
    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:
        """Return the values of a column in the type in which its new field is stored."""


def rewrite_plan(base: Snapshot, schema: Schema, values: RetypedValues) -> ColumnPlan:
    """Plan one more file with the values for each fragment, for a version with this schema."""
    file = column_file(base, values.after)
    file.ensure_possible(values.schema)
    tasks = [
        ColumnTask(scan=scan, values=values, file=file)
        for scan in plan(base, ScanRequest(columns=())).tasks
    ]
    return ColumnPlan(schema=schema, tasks=tasks)


def drop_columns(
    base: Snapshot, paths: Sequence[str], *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Drop columns, or struct fields by path, and commit."""
    chosen = choices.named("DROP COLUMNS", base.location)
    return project(base, lambda schema: evolution.drop(schema, paths), chosen)


def ensure_structs_stay(base: Snapshot, paths: Sequence[str]) -> None:
    """Raise if a struct would lose its last field, unless the struct itself is dropped."""
    trails = [evolution.resolve(base.manifest.schema, path) for path in paths]
    gone = {trail[-1].id for trail in trails}
    for trail in trails:
        around = trail[:-1]
        if not around or gone & {field.id for field in around}:
            continue
        if all(child.id in gone for child in around[-1].children):
            whole = join_path([field.name for field in around])
            raise InvalidRequestError(
                f"column {whole} would be left without fields",
                column=whole,
                action=f"Drop {whole} itself, or keep a field.",
            )


def reorder_columns(
    base: Snapshot, names: Sequence[str], *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Move columns to the front, in this order, and commit; the others keep theirs."""
    return project(base, lambda schema: evolution.reorder(schema, names), choices)


def project(base: Snapshot, change: Callable[[Schema], Schema], choices: CommitChoices) -> Snapshot:
    """Commit another schema for the same files."""

    def attempt(at: Snapshot) -> Snapshot:
        before = at.manifest.schema
        after = change(before)
        if any(index.name == MEM_WAL for index in at.indices):
            _ensure_unmerged_rows_fit(before, after)
        operation = Project(
            schema=after,
            preserves_nullability=not evolution.forbids_more_nulls(before, after),
        )
        return publish(at, operation, choices)

    return retry_on_newest(base, attempt, DEFAULT)


def _ensure_unmerged_rows_fit(before: Schema, after: Schema) -> None:
    """Refuse a change that rows of a MemWAL, whose columns are found by field id, do not survive.

    Without the highest id, the next column that is added would get it, and with it the values of
    the dropped column.
    """
    for field in before.primary_key():
        if field.id not in after.by_id():
            raise UnsupportedError(
                f"key column {field.name} cannot be dropped while the table has a MemWAL",
                column=field.name,
                action="Drop the MemWAL after a merge.",
            )
    if after.max_field_id < before.max_field_id:
        last = before.by_id()[FieldId(before.max_field_id)]
        raise UnsupportedError(
            f"column {last.name}, which was added last, cannot be dropped while the table has a "
            "MemWAL: rows of the MemWAL may have values of it",
            column=last.name,
            action="Drop the MemWAL after a merge, or drop the column after another was added.",
        )


_CHECK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """Changes of one column; None leaves a property unchanged."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


class CastValues(RetypedValues):
    """Values of columns cast to another type."""

    __slots__ = ()

    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:  # noqa: ARG002
        """Cast the values."""
        return cast_column(array, old, new, old.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindNulls:
    """Find the fields that are null in a live row of a fragment."""

    scan: ScanTask
    trails: tuple[tuple[Field, ...], ...]

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _CHECK_BYTES

    def run(self) -> bytes:
        """Return the path of the first such field, or nothing."""
        for trail in self.trails:
            schema = Schema(fields=(_chain(trail),))
            for batch in live_batches(self.scan, schema):
                if _has_null(batch.column(0), trail):
                    return ".".join(field.name for field in trail).encode()
        return b""


def alter_columns(
    base: Snapshot,
    changes: Sequence[ColumnChange],
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> Snapshot:
    """Change columns and commit.

    Only a change of type writes data: one more file for each fragment. Indices on such a column are
    dropped. A column that becomes non-nullable is read to check for nulls.
    """
    running = engine or default_engine(base)
    choices = choices.named("CHANGE COLUMNS", base.location)
    first = _altered(base, changes)
    ensure_no_nulls(base, changes, running)
    if not first.after.fields:
        return project(base, lambda schema: _renamed(schema, changes), choices)
    backfill = Backfill(engine=running, choices=choices, progress=progress)
    return backfill.run(base, lambda at: _cast_plan(at, changes))


def ensure_no_nulls(base: Snapshot, changes: Sequence[ColumnChange], engine: Engine) -> None:
    """Raise an error if a column that becomes non-nullable contains nulls."""
    schema = base.manifest.schema
    trails = tuple(
        evolution.resolve(schema, change.path) for change in changes if change.nullable is False
    )
    trails = tuple(trail for trail in trails if trail[-1].nullable)
    if not trails:
        return
    scans = plan(base, ScanRequest(columns=())).tasks
    tasks = [FindNulls(scan=scan, trails=trails) for scan in scans]
    for path in engine.run(Job(description=f"find nulls of {base.location.uri}", tasks=tasks)):
        if path:
            name = path.decode()
            problem = f"Column {name!r} contains NULL values and cannot be made non-nullable"
            raise SchemaMismatchError(
                problem,
                table=base.location.uri,
                version=base.version,
                path=path.decode(),
                action="Fill in the nulls first.",
            )


def _cast_plan(base: Snapshot, changes: Sequence[ColumnChange]) -> ColumnPlan:
    altered = _altered(base, changes)
    values = CastValues(before=altered.before, after=altered.after)
    return rewrite_plan(base, altered.schema, values)


def _altered(base: Snapshot, changes: Sequence[ColumnChange]) -> Altered:
    manifest = base.manifest
    first_id = evolution.first_free_id(manifest.schema, manifest.fragments)
    alterations = [_alteration(manifest.schema, change) for change in changes]
    return evolution.alter(manifest.schema, alterations, first_id=first_id)


def _renamed(schema: Schema, changes: Sequence[ColumnChange]) -> Schema:
    alterations = [_alteration(schema, change) for change in changes]
    return evolution.alter(schema, alterations, first_id=0).schema


def _alteration(schema: Schema, change: ColumnChange) -> Alteration:
    retyped: Field | None = None
    if change.data_type is not None:
        field = evolution.resolve(schema, change.path)[-1]
        ensure_castable(field, change.data_type, change.path)
        retyped = from_arrow(pa.schema([pa.field("value", change.data_type)])).fields[0]
    return Alteration(path=change.path, name=change.name, nullable=change.nullable, retyped=retyped)


def _chain(trail: tuple[Field, ...]) -> Field:
    """Return the chain of fields from the first to the last."""
    if len(trail) == 1:
        return trail[0]
    return trail[0].with_children((_chain(trail[1:]),))


def _has_null(array: pa.Array, trail: tuple[Field, ...]) -> bool:
    """Whether the last field of a path is null in some row, including through a null parent."""
    if array.null_count:
        return True
    if len(trail) == 1:
        return False
    if pa.types.is_struct(array.type):
        return _has_null(array.field(0), trail[1:])
    return _has_null(array.flatten(), trail[1:])


class GrownValues(RetypedValues):
    """Values of columns with more fields, which are null."""

    __slots__ = ()

    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:  # noqa: ARG002
        """Add the fields."""
        return grown(array, target)


def add_null_members(
    base: Snapshot,
    schema: pa.Schema,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add columns, and fields of existing columns, null in every row.

    A column is written once more, in one file for each fragment, if fields cannot be added to its
    files in place. The fields of that column get new ids, and its indices are dropped.
    """
    growth = _growth(base, schema)
    if growth.after.fields:
        backfill = Backfill(engine=engine or default_engine(base), choices=choices)
        base = backfill.run(base, lambda at: _plan(at, schema))
    if growth.in_place.fields:
        base = add_null_columns(base, public_schema(growth.in_place), choices=choices)
    return base


def widened(
    base: Snapshot,
    data: pa.Schema,
    choices: CommitChoices = DEFAULT_CHOICES,
    *,
    engine: Engine | None = None,
    casts: bool = False,
) -> Snapshot:
    """Add the columns and fields that only the data has, null in all existing rows."""
    missing = _missing(base, data)
    if not missing:
        return base
    schema, version = widened_schema(base, data), base.manifest.data_version
    # Nothing could be appended if the data did not fit, or to a column that files cannot store.
    ensure_fits(schema, data, casts=casts)
    is_for_newest = is_for_newest_readers(base.manifest.schema, version)
    ensure_storable(schema, version, newest_readers_only=is_for_newest)
    return add_null_members(base, missing, engine=engine, choices=choices)


def widened_schema(base: Snapshot, data: pa.Schema) -> Schema:
    """Return a version's schema with the columns and fields that only the data has."""
    growth = _growth(base, _missing(base, data))
    used = max(node.id for node in (*base.manifest.schema.walk(), *growth.schema.walk()))
    first_id = evolution.first_free_id(base.manifest.schema, base.manifest.fragments)
    version = base.manifest.data_version
    return evolution.widen(
        growth.schema, growth.in_place, first_id=max(first_id, used + 1), version=version
    ).schema


def _missing(base: Snapshot, data: pa.Schema) -> pa.Schema:
    """Return the columns, and the fields of existing columns, that only the data has; nullable."""
    schema = base.manifest.schema
    known = set(schema.names)
    shared = pa.schema([field for field in data if field.name in known])
    members = public_schema(evolution.missing_members(schema, from_arrow(shared)))
    extra = [field.with_nullable(True) for field in data if field.name not in known]
    return pa.schema([*members, *extra])


def grown(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values in a type with more fields, which are null."""
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        names = [field.name for field in array.type]
        children = [
            grown(array.field(names.index(f.name)), f.type)
            if f.name in names
            else pa.nulls(len(array), f.type)
            for f in target
        ]
        return struct_of(children, list(target), array)
    tight = tightened(array)
    if not pa.types.is_map(target):
        return rebuilt_list(tight, target, grown(tight.values, target.value_type))
    entries = pa.StructArray.from_arrays(
        [grown(tight.keys, target.key_type), grown(tight.items, target.item_type)],
        fields=[target.key_field, target.item_field],
    )
    return rebuilt_list(tight, target, entries)


def _growth(base: Snapshot, schema: pa.Schema) -> Growth:
    manifest = base.manifest
    return evolution.grow(
        manifest.schema,
        from_arrow(schema),
        first_id=evolution.first_free_id(manifest.schema, manifest.fragments),
        version=manifest.data_version,
    )


def _plan(base: Snapshot, schema: pa.Schema) -> ColumnPlan:
    growth = _growth(base, schema)
    values = GrownValues(before=growth.before, after=growth.after)
    return rewrite_plan(base, growth.schema, values)
