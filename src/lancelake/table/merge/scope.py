"""Name resolution of merge expressions: `source.x`, `target.x` and unqualified columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.engine import Evaluator
from lancelake.expr.predicate import Predicate, predicate
from lancelake.format.arrow_schema import expression_scope
from lancelake.format.computed_once import computed_once
from lancelake.format.frozen import FrozenMap
from lancelake.format.schema import Schema
from lancelake.scan.outputs import expression_schema

SOURCE = "source"
TARGET = "target"
_QUALIFIED = 2
"""Parts of the path of a column: its side and its name."""

Sides = Mapping[str, pa.RecordBatch]
"""Rows of each side, side by side."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The sides of a merge: `source.x`, `target.x`, and `x` where only one side has it."""

    sides: FrozenMap[str, pa.Schema]

    def condition(self, text: str) -> ScopedCondition:
        """Validate a condition."""
        schema, path_of = self._schema, partial(self._qualified, text)
        try:
            found = predicate(text, schema, expression_schema(schema), (), path_of)
        except InvalidExpressionError as error:
            raise self._explained(error) from error
        return ScopedCondition(predicate=found, needs=self._needs(found.paths))

    def value(self, text: str, target: pa.DataType | None) -> ScopedValue:
        """Validate an expression, whose values are cast to a type."""
        found = self._bound(text)
        Evaluator(found, target=target).result_field("value", expression_schema(self._schema))
        return ScopedValue(expression=found, target=target, needs=self._needs(found.paths))

    def column(self, text: str, target: pa.DataType | None) -> tuple[str, str] | None:
        """Return side and name of the column that is the whole expression and has a type."""
        path = self._bound(text).column
        if target is None or path is None or len(path) != _QUALIFIED:
            return None
        side, name = path
        return (side, name) if self.sides[side].field(name).type.equals(target) else None

    def _bound(self, text: str) -> BoundExpression:
        """Resolve each column to its side."""
        try:
            return bind(text, self._schema, path_of=partial(self._qualified, text))
        except InvalidExpressionError as error:
            raise self._explained(error) from error

    @computed_once
    def _schema(self) -> Schema:
        structs = [
            pa.field(side, pa.struct(list(_nullable(schema))))
            for side, schema in self.sides.items()
        ]
        return expression_scope(pa.schema([*structs, *self._plain().values()]))

    def _plain(self) -> dict[str, pa.Field]:
        """Return the columns that are unambiguous without a qualifier."""
        found: dict[str, pa.Field] = {}
        every = [field.name.lower() for schema in self.sides.values() for field in schema]
        for schema in self.sides.values():
            for field in _nullable(schema):
                name = field.name.lower()
                if every.count(name) == 1 and name not in self.sides:
                    found[field.name] = field
        return found

    def _qualified(self, text: str, path: tuple[str, ...]) -> tuple[str, ...]:
        """Qualify a column; a side's name on its own is a column of that name."""
        if path[0] in self.sides and len(path) > 1:
            return path
        found = [
            (side, name)
            for side, schema in self.sides.items()
            for name in schema.names
            if name == path[0] or (path[0] in self.sides and name.lower() == path[0])
        ]
        if len(found) > 1:
            raise _ambiguous(path[0], [side for side, _ in found], text)
        return (*found[0], *path[1:]) if found else path

    def _explained(self, error: InvalidExpressionError) -> InvalidExpressionError:
        """Explain that an ambiguous column must be qualified."""
        name = str(error.facts.get("column", ""))
        shared = [side for side, schema in self.sides.items() if name in schema.names]
        return error if len(shared) <= 1 else _ambiguous(name, shared, error.facts.get("text"))

    def _needs(self, paths: tuple[tuple[str, ...], ...]) -> FrozenMap[str, tuple[str, ...]]:
        needs: dict[str, list[str]] = {side: [] for side in self.sides}
        for side, *column in paths:
            names = column[:1] or self.sides[side].names
            needs[side] += [name for name in names if name not in needs[side]]
        return FrozenMap({side: tuple(names) for side, names in needs.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedCondition:
    """A condition, and the columns of each side that it refers to."""

    predicate: Predicate
    needs: FrozenMap[str, tuple[str, ...]]

    def holds(self, sides: Sides) -> pa.BooleanArray:
        """Evaluate the condition for each row."""
        return self.predicate(_joint(sides, self.needs))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedValue:
    """An expression, and the columns of each side that it refers to."""

    expression: BoundExpression
    target: pa.DataType | None
    needs: FrozenMap[str, tuple[str, ...]]

    def of(self, sides: Sides) -> pa.Array:
        """Evaluate the expression for each row."""
        return Evaluator(self.expression, target=self.target)(_joint(sides, self.needs))


def _nullable(schema: pa.Schema) -> list[pa.Field]:
    return [field.with_nullable(True) for field in schema]


def _ambiguous(name: str, sides: Sequence[str], text: object) -> InvalidExpressionError:
    either = " or ".join(f"{side}.{name}" for side in sides)
    problem = f"column {name} is ambiguous: write {either}"
    return InvalidExpressionError(problem, text=text, column=name)


def _joint(sides: Sides, needs: Mapping[str, tuple[str, ...]]) -> pa.RecordBatch:
    """Combine the needed columns of all sides in one batch, as a struct for each side."""
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    for side, names in needs.items():
        if not names:
            continue
        batch = sides[side].select(list(names))
        inner = [f.with_nullable(True) for f in batch.schema]
        arrays.append(pa.StructArray.from_arrays(batch.columns, fields=inner))
        fields.append(pa.field(side, arrays[-1].type))
    rows = next(iter(sides.values())).num_rows
    if not arrays:
        arrays, fields = [pa.nulls(rows)], [pa.field("", pa.null())]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
