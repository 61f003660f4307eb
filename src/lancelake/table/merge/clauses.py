"""Clauses of a merge, and the columns they read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Generic, TypeVar, assert_never

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.predicate import Predicate, predicate
from lancelake.format.arrow_schema import expression_scope
from lancelake.format.frozen import FrozenMap, computed_once
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.schema import Schema
from lancelake.scan.request import expression_schema
from lancelake.table.merge.match import key_indices

Expression = TypeVar("Expression")
"""Type of conditions and values: SQL text, or Spark columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAll(Generic[Expression]):
    """Set every column of the source to the source's value."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSet(Generic[Expression]):
    """Set columns to the values of expressions."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRow(Generic[Expression]):
    """Delete the row from the table."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(Generic[Expression]):
    """Fail the whole merge."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAll(Generic[Expression]):
    """Insert the source row; missing columns are null."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Generic[Expression]):
    """Insert a row with the values of expressions; other columns are null."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


MatchedBy = UpdateAll[Expression] | UpdateSet[Expression] | DeleteRow[Expression] | Fail[Expression]
NotMatchedBy = InsertAll[Expression] | InsertValues[Expression]
NotMatchedBySourceBy = UpdateSet[Expression] | DeleteRow[Expression]

Matched = MatchedBy[str]
NotMatched = NotMatchedBy[str]
NotMatchedBySource = NotMatchedBySourceBy[str]


class Duplicates(Enum):
    """How source rows with the same key are handled."""

    REFUSE = "refuse"
    LAST_WINS = "last_wins"
    INSERT_ALL = "insert_all"
    """New rows may share a key; a table row is still updated by one source row at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses(Generic[Expression]):
    """The clauses of a merge; of each kind, the first whose condition is true applies."""

    matched: tuple[MatchedBy[Expression], ...] = ()
    not_matched: tuple[NotMatchedBy[Expression], ...] = ()
    not_matched_by_source: tuple[NotMatchedBySourceBy[Expression], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a merge that changes nothing."""
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            raise InvalidRequestError(
                "The merge insert job is not configured to change the data in any way",
                action="Add a clause for matched, not matched, or not matched by source rows.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec(Clauses[str]):
    """A merge: the key, and the clauses.

    Conditions and values refer to columns as `source.x` and `target.x`; those for rows not matched
    by the source refer to the table's columns alone.
    """

    on: tuple[str, ...]
    duplicates: Duplicates = Duplicates.REFUSE
    adds_columns: bool = field(default=False)
    """Whether columns that only the source has are added to the table."""

    casts: bool = False
    """Whether source values of another type are cast if the cast is lossless."""

    use_index: bool = True
    """Whether indices of the key columns find the rows that match."""

    merged_generations: tuple[MergedGeneration, ...] = ()
    """Generations of a MemWAL whose rows the source has."""

    def __post_init__(self) -> None:
        """Refuse a merge without a key, or one that changes nothing."""
        if not self.on:
            raise InvalidRequestError(
                "A merge insert operation requires join keys: specify `on` columns explicitly or "
                "configure a primary key in the dataset schema"
            )
        # Zero-argument super() does not work in a dataclass with slots.
        Clauses.__post_init__(self)


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
        every = [column.name.lower() for schema in self.sides.values() for column in schema]
        for schema in self.sides.values():
            for column in _nullable(schema):
                name = column.name.lower()
                if every.count(name) == 1 and name not in self.sides:
                    found[column.name] = column
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


def explain(base: Snapshot, spec: MergeSpec, *, source: Sequence[str] | None = None) -> str:
    """Describe the steps of a merge, the last one first."""
    head = (
        f"MergeInsert: on=[{', '.join(spec.on)}], "
        f"when_matched={_named(spec.matched, 'DoNothing')}, "
        f"when_not_matched={_named(spec.not_matched, 'DoNothing')}, "
        f"when_not_matched_by_source={_named(spec.not_matched_by_source, 'Keep')}"
    )
    columns = "all columns" if source is None else ", ".join(source)
    steps = [
        head,
        "Write: changed rows with their row ids, then new rows",
        "    Fetch: columns of matching rows that the clauses need",
        f"      HashJoin: source.[{', '.join(spec.on)}] = target.[{', '.join(spec.on)}]",
        f"        LanceRead: uri={base.location.uri}, version={base.version}, "
        f"num_fragments={len(base.manifest.fragments)}, columns=[{', '.join(spec.on)}, _rowaddr]"
        + _indices(base, spec),
        f"        Source: {columns}",
    ]
    return "\n".join(steps) + "\n"


def _indices(base: Snapshot, spec: MergeSpec) -> str:
    found = key_indices(base, spec.on) if spec.use_index and base.indices else []
    return f", key_indices=[{', '.join(found)}]" if found else ""


def _named(clauses: Sequence[Matched | NotMatched | NotMatchedBySource], none: str) -> str:
    return " else ".join(_clause(clause) for clause in clauses) or none


def _clause(clause: Matched | NotMatched | NotMatchedBySource) -> str:
    match clause:
        case UpdateAll():
            name = "UpdateAll"
        case UpdateSet(values=values):
            name = f"Update({', '.join(f'{c} = {text}' for c, text in values.items())})"
        case DeleteRow():
            name = "Delete"
        case Fail():
            name = "Fail"
        case InsertAll():
            name = "InsertAll"
        case InsertValues(values=values):
            name = f"Insert({', '.join(f'{c} = {text}' for c, text in values.items())})"
        case _:
            assert_never(clause)
    return name if clause.condition is None else f"{name} if {clause.condition}"
