"""Assignments of new column values from SQL expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.engine import Evaluator
from lancelake.format.arrow_schema import public_field
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema
from lancelake.scan.outputs import expression_schema
from lancelake.suggest import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A column and the expression of its new value, which is cast to the column's type."""

    column: str
    field_id: FieldId
    expression: BoundExpression
    target: pa.DataType | None

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the new value for each row."""
        return Evaluator(self.expression, target=self.target)(batch)


def bind_assignments(updates: Mapping[str, str], schema: Schema) -> tuple[Assignment, ...]:
    """Validate columns and expressions against a schema."""
    if not updates:
        raise InvalidRequestError("No updates provided", action="Set at least one column.")
    return tuple(_bound(column, text, schema) for column, text in updates.items())


def assigned(batch: pa.RecordBatch, assignments: Sequence[Assignment]) -> pa.RecordBatch:
    """Return a batch with new values; all expressions read the old ones."""
    values = {a.column: a.values(batch) for a in assignments}
    for column, array in values.items():
        position = batch.schema.get_field_index(column)
        field = pa.field(column, array.type, True, batch.schema.field(position).metadata)
        batch = batch.set_column(position, field, array)
    return batch


def _bound(column: str, text: str, schema: Schema) -> Assignment:
    field = next((f for f in schema.fields if f.name == column), None)
    if field is None:
        problem = f"Column {column!r} does not exist in the table"
        advice = suggestion(column, schema.names, "columns")
        raise InvalidRequestError(problem, column=column, action=advice)
    expression = bind(text, schema)
    target = _cast_target(field)
    # An expression that can never be cast, such as non-numeric text to a number, fails here.
    Evaluator(expression, target=target).result_field(column, expression_schema(schema))
    return Assignment(column=column, field_id=field.id, expression=expression, target=target)


def _cast_target(field: Field) -> pa.DataType | None:
    """Return the type to cast to; None if the writer converts values."""
    found = public_field(field).type
    if isinstance(found, pa.BaseExtensionType) or field.is_json:
        return None
    return found.value_type if pa.types.is_dictionary(found) else found
