"""Output columns of a scan: stored, metadata and computed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.data.recently_used import cached_by_identity
from lancelake.data.row_meta import META_NAMES, META_TYPE, MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.engine import Evaluator
from lancelake.format.arrow_schema import public_field, storage_schema
from lancelake.format.blobs import described, described_schema, has_blobs, valued
from lancelake.format.column_path import split_path
from lancelake.format.extension_names import EXTENSION_NAME
from lancelake.format.frozen import FrozenMap
from lancelake.format.schema import Field, Schema
from lancelake.scan.request import ScanRequest
from lancelake.suggest import suggestion

BINARY_JSON = b"lance.json"
"""Extension name of stored JSON."""

_SCHEMAS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutput:
    """The value at a path of the schema; `shown` is the field with its blobs described."""

    name: str
    path: tuple[str, ...]
    shown: Field

    def stored_blobs(self, schema: Schema) -> Field | None:
        """Return the stored field if it is or contains a blob."""
        trail = _exact(schema, self.path)
        return trail[-1] if trail is not None and has_blobs(trail[-1]) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaOutput:
    """A column computed from the position of a row."""

    name: str
    meta: MetaColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionOutput:
    """The value of a SQL expression."""

    name: str
    expression: BoundExpression


Output = ColumnOutput | MetaOutput | ExpressionOutput


def resolve_outputs(schema: Schema, request: ScanRequest) -> tuple[Output, ...]:
    """Resolve the request's columns to outputs; names must be unique."""
    requested = _requested(schema, request.columns)
    seen: set[str] = set()
    for output in requested:
        if output.name in seen:
            raise InvalidRequestError(f"Duplicate column name: {output.name}", column=output.name)
        seen.add(output.name)
    if request.json_binary:
        requested = [_with_binary_json(output) for output in requested]
    metas = [MetaColumn.ROW_ID] if request.with_row_id else []
    metas += [MetaColumn.ROW_ADDRESS] if request.with_row_address else []
    last = [MetaOutput(name=meta.value, meta=meta) for meta in metas]
    # Requested by name and by flag, they are returned once, at the position of the flag.
    return tuple(output for output in requested if output not in last) + tuple(last)


def output_schema(
    outputs: Sequence[Output], schema: Schema, *, blob_values: bool = False
) -> pa.Schema:
    """Return the Arrow schema that users see for some outputs."""
    if not blob_values and tuple(outputs) == _all_columns(schema):
        return _all_fields(schema)
    return _arrow_schema(outputs, schema, blob_values=blob_values)


def output_field(output: Output, schema: Schema, *, blob_values: bool = False) -> pa.Field:
    """Return the Arrow field that users see for an output."""
    if isinstance(output, MetaOutput):
        return pa.field(output.name, META_TYPE)
    if isinstance(output, ColumnOutput):
        shown = output.shown
        if blob_values and (stored := output.stored_blobs(schema)) is not None:
            shown = valued(stored)
        return public_field(shown).with_name(output.name)
    return Evaluator(output.expression).result_field(output.name, expression_schema(schema))


@cached_by_identity(_SCHEMAS)
def expression_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema that expressions are evaluated on, with metadata columns."""
    fields = [pa.field(name, META_TYPE) for name in META_NAMES]
    return pa.schema([*storage_schema(described_schema(schema)), *fields])


def _requested(schema: Schema, columns: Sequence[str] | FrozenMap[str, str] | None) -> list[Output]:
    if columns is None:
        return list(_all_columns(schema))
    if isinstance(columns, FrozenMap):
        return [_computed(schema, name, sql) for name, sql in columns.items()]
    return [_named(schema, name) for name in columns]


@cached_by_identity(_SCHEMAS)
def _all_columns(schema: Schema) -> tuple[ColumnOutput, ...]:
    return tuple(
        ColumnOutput(name=f.name, path=(f.name,), shown=described(f)) for f in schema.fields
    )


@cached_by_identity(_SCHEMAS)
def _all_fields(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of all columns."""
    return _arrow_schema(_all_columns(schema), schema, blob_values=False)


def _arrow_schema(outputs: Sequence[Output], schema: Schema, *, blob_values: bool) -> pa.Schema:
    fields = [output_field(output, schema, blob_values=blob_values) for output in outputs]
    return pa.schema(fields, metadata=dict(schema.metadata) or None)


def _named(schema: Schema, name: str) -> Output:
    if name in META_NAMES and not any(f.name == name for f in schema.fields):
        return MetaOutput(name=name, meta=MetaColumn(name))
    trail = _exact(schema, (name,)) or _exact(schema, split_path(name))
    if trail is None:
        problem = f"Schema error: No field named {name}"
        advice = suggestion(name, schema.names, "columns")
        raise InvalidRequestError(problem, column=name, action=advice)
    for parent in trail[:-1]:
        if parent.logical_type != "struct":
            problem = f"column {name} is inside {parent.name}, which is not a struct"
            raise InvalidRequestError(problem, column=name)
    return ColumnOutput(name=name, path=tuple(f.name for f in trail), shown=described(trail[-1]))


def _exact(schema: Schema, segments: tuple[str, ...]) -> tuple[Field, ...] | None:
    level = schema.fields
    trail: list[Field] = []
    for segment in segments:
        node = next((f for f in level if f.name == segment), None)
        if node is None:
            return None
        trail.append(node)
        level = node.children
    return tuple(trail)


def _computed(schema: Schema, name: str, sql: str) -> Output:
    if any(f.name == sql for f in schema.fields):
        return _named(schema, sql) if name == sql else _renamed(schema, name, sql)
    if sql in META_NAMES:
        return MetaOutput(name=name, meta=MetaColumn(sql))
    return ExpressionOutput(name=name, expression=bind(sql, schema, extra_names=META_NAMES))


def _with_binary_json(output: Output) -> Output:
    if not isinstance(output, ColumnOutput) or not output.shown.is_json:
        return output
    metadata = FrozenMap({**output.shown.metadata, EXTENSION_NAME: BINARY_JSON})
    stored = replace(output.shown, logical_type="large_binary", metadata=metadata)
    return replace(output, shown=stored)


def _renamed(schema: Schema, name: str, column: str) -> Output:
    field = next(f for f in schema.fields if f.name == column)
    return ColumnOutput(name=name, path=(column,), shown=described(field))
