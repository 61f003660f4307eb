"""Binding of the conditions of a merge.

A resolved expression refers to columns by id. Rows that were fetched, cached or sent through Python
have lost these ids, which are restored before such an expression is used.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import quoted_name
from lancelake.spark.jvm.catalyst import (
    BareRelation,
    attribute_id,
    column,
    conjuncts,
    expression,
    frame,
    ids_named,
    items,
    keeps_values_apart,
    kind,
    known_as,
    seq,
)
from lancelake.spark.jvm.gateway import Gateway, driver_object
from lancelake.spark.jvm.python_tasks import java_schema

_JAVA = "RowExpressions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedClause:
    """A clause of a resolved command, whose expressions stay in Java.

    A clause may assign thousands of columns, and each question to Java takes time.
    """

    java: Any
    assigns: tuple[str, ...] | None
    """The columns whose values change; None if the clause deletes rows."""

    @property
    def condition(self) -> Column | None:
        """The condition; None if the clause always applies."""
        condition = self.java.condition()
        return None if condition is None else Column(condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The ids of the columns of both sides of a command; those of the source by position."""

    gateway: Gateway
    java: Any
    target: Mapping[str, int]
    source: tuple[int, ...]
    padded: frozenset[str]
    """Columns that Spark pads when reading: their values differ from the stored ones."""

    @staticmethod
    def of(gateway: Gateway, target: BareRelation, source: Any = None) -> Binding:
        """Bind the columns of a table, and of the plan of a source."""
        nothing = seq(gateway, [])
        is_padded = target.shown is not target.relation
        java = driver_object(
            gateway,
            _JAVA,
            target.shown.output(),
            target.relation.output(),
            target.shown.projectList() if is_padded else nothing,
            nothing if source is None else source.output(),
        )
        columns = json.loads(java.described())
        return Binding(
            gateway=gateway,
            java=java,
            target=columns["target"],
            source=tuple(columns["source"]),
            padded=frozenset(columns["padded"]),
        )

    def clause(self, condition: Any, assignments: Any = None) -> ResolvedClause:
        """Return a clause; without assignments it deletes rows."""
        java = self.java.clause(condition, assignments)
        names = None if assignments is None else tuple(json.loads(java.names()))
        return ResolvedClause(java=java, assigns=names)

    def source_frame(self, plan: Any) -> DataFrame:
        """Return the rows of the source with columns that are named by their positions."""
        return frame(self.gateway, self.java.numbered(plan))

    def named(self, expressions: Iterable[Column]) -> tuple[str, ...]:
        """Return the columns of the table that expressions refer to."""
        return self._with_ids(self._ids(expressions))

    def named_by(self, clauses: Sequence[ResolvedClause]) -> tuple[str, ...]:
        """Return the columns of the table that clauses refer to."""
        return self._with_ids(set(json.loads(self.java.references(self._list(clauses)))))

    def source_positions(self, expressions: Iterable[Column]) -> tuple[int, ...]:
        """Return the positions of source columns that expressions refer to."""
        ids = self._ids(expressions)
        return tuple(i for i, number in enumerate(self.source) if number in ids)

    def of_target(self, frame: DataFrame) -> DataFrame:
        """Return a frame with the attribute ids of the table's columns; others are unchanged."""
        shown = [self._bound(f.col(quoted_name(c)), c) for c in frame.columns]
        return frame.select(*shown)

    def unpacked(
        self, rows: DataFrame, clauses: Sequence[ResolvedClause], sides: tuple[str, str | None]
    ) -> tuple[DataFrame, list[ResolvedClause]]:
        """Return rows with fields of the structs of both sides as columns with attribute ids.

        These are the fields that clauses refer to. The ids are new, and so are those of the
        clauses: ids must be unique in a plan.
        """
        java = self.java.renewed()
        renewed = [
            ResolvedClause(java=java.renewed(clause.java), assigns=clause.assigns)
            for clause in clauses
        ]
        unpacked = java.unpacked(rows._jdf, *sides, self._list(renewed))
        return DataFrame(unpacked, rows.sparkSession), renewed

    def outputs(
        self,
        rows: DataFrame,
        schema: t.StructType,
        computed: t.StructType,
        clauses: Sequence[ResolvedClause],
        *,
        action: str,
        target_name: str | None,
        more: Sequence[Column],
    ) -> DataFrame:
        """Return every column of a schema, from the clause that `action` numbers, and more ones.

        A column that the clause does not assign is that of the target, or null without a target.
        Columns that are not `computed` are null.
        """
        outputs = self.java.outputs(
            rows._jdf,
            java_schema(self.gateway, schema),
            java_schema(self.gateway, computed),
            self._list(clauses),
            action,
            target_name,
            _java_list(self.gateway, [column._jc for column in more]),
        )
        return DataFrame(outputs, rows.sparkSession)

    def _list(self, clauses: Sequence[ResolvedClause]) -> Any:
        return _java_list(self.gateway, [clause.java for clause in clauses])

    def _with_ids(self, ids: set[int]) -> tuple[str, ...]:
        return tuple(name for name, number in self.target.items() if number in ids)

    def _ids(self, expressions: Iterable[Column]) -> set[int]:
        named = (ids_named(expression(self.gateway, each)) for each in expressions)
        return set().union(*named)

    def _bound(self, value: Column, name: str) -> Column:
        if name not in self.target:
            return value
        return known_as(self.gateway, value, self.java.attribute(name), name)


def _java_list(gateway: Gateway, items: Iterable[Any]) -> Any:
    result = gateway.cls("java.util.ArrayList")()
    for item in items:
        result.add(item)
    return result


# Functions that Spark applies to a CHAR column before it is compared.
_PADDING = ("StringRPad", "StringTrimRight")
_NO_COLUMN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """A conjunct that compares a table column for equality with a source value."""

    name: str
    target: Any
    source: Any
    is_null_safe: bool


def equalities(binding: Binding, condition: Column) -> list[tuple[Any, Equality | None]]:
    """Return the conjuncts of a condition, with the equality of each, if it is one."""
    gateway = binding.gateway
    mine = {number: name for name, number in binding.target.items()}
    theirs = set(binding.source)
    parts = conjuncts(expression(gateway, condition))
    return [(part, _equality(gateway, part, mine, theirs)) for part in parts]


def key_columns(binding: Binding, condition: Column) -> tuple[str, ...]:
    """Return the table columns that must equal a source value for a match."""
    parts = equalities(binding, condition)
    return tuple(dict.fromkeys(equality.name for _, equality in parts if equality is not None))


def with_char_keys(binding: Binding, condition: Column, chars: Container[str]) -> Column:
    """Return a condition that compares CHAR key columns without trailing spaces.

    Spark pads literals that are compared with a CHAR column, but not values of a source, which an
    insert would store padded: a second row with the same key.
    """
    parts = (_compared(binding.gateway, *part, chars) for part in equalities(binding, condition))
    return reduce(and_, parts)


def _compared(
    gateway: Gateway, part: Any, equality: Equality | None, chars: Container[str]
) -> Column:
    if equality is None or equality.name not in chars:
        return column(gateway, part)
    mine, theirs = (f.rtrim(column(gateway, side)) for side in (equality.target, equality.source))
    return mine.eqNullSafe(theirs) if equality.is_null_safe else mine == theirs


def _equality(
    gateway: Gateway, part: Any, mine: Mapping[int, str], theirs: Set[int]
) -> Equality | None:
    if kind(part) not in ("EqualTo", "EqualNullSafe"):
        return None
    sides = items(part.children())
    for target, source in (sides, sides[::-1]):
        name = mine.get(_deciding(gateway, target))
        named = ids_named(source)
        if name is not None and named and named <= theirs:
            is_null_safe = kind(part) == "EqualNullSafe"
            return Equality(name=name, target=target, source=source, is_null_safe=is_null_safe)
    return None


def _deciding(gateway: Gateway, value: Any) -> int:
    """Return the id of the column that determines a value, if distinct values stay distinct."""
    while kind(value) in _PADDING or (kind(value) == "Cast" and keeps_values_apart(gateway, value)):
        value = items(value.children())[0]
    return attribute_id(value) if kind(value) == "AttributeReference" else _NO_COLUMN
