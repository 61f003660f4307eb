"""Bind resolved Spark expressions to the columns of both sides.

A resolved expression refers to columns by id. Rows that were fetched, cached or sent through Python
have lost these ids, which are restored before such an expression is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.format.column_path import quoted_name
from lancelake.spark.jvm.catalyst import (
    BareRelation,
    expression,
    frame,
    ids_named,
    known_as,
    seq,
)
from lancelake.spark.jvm.compiled import driver_object
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.python_read import java_schema

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
        found = self.java.condition()
        return None if found is None else Column(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedClauses:
    """The clauses of a resolved command; of each kind, the first that applies is used."""

    matched: tuple[ResolvedClause, ...] = ()
    not_matched: tuple[ResolvedClause, ...] = ()
    not_matched_by_source: tuple[ResolvedClause, ...] = ()


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
        found = json.loads(java.described())
        return Binding(
            gateway=gateway,
            java=java,
            target=found["target"],
            source=tuple(found["source"]),
            padded=frozenset(found["padded"]),
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
        return tuple(i for i, found in enumerate(self.source) if found in ids)

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
        found = java.unpacked(rows._jdf, *sides, self._list(renewed))
        return DataFrame(found, rows.sparkSession), renewed

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
        found = self.java.outputs(
            rows._jdf,
            java_schema(self.gateway, schema),
            java_schema(self.gateway, computed),
            self._list(clauses),
            action,
            target_name,
            _java_list(self.gateway, [column._jc for column in more]),
        )
        return DataFrame(found, rows.sparkSession)

    def _list(self, clauses: Sequence[ResolvedClause]) -> Any:
        return _java_list(self.gateway, [clause.java for clause in clauses])

    def _with_ids(self, ids: set[int]) -> tuple[str, ...]:
        return tuple(name for name, found in self.target.items() if found in ids)

    def _ids(self, expressions: Iterable[Column]) -> set[int]:
        named = (ids_named(expression(self.gateway, found)) for found in expressions)
        return set().union(*named)

    def _bound(self, found: Column, name: str) -> Column:
        if name not in self.target:
            return found
        return known_as(self.gateway, found, self.java.attribute(name), name)


def _java_list(gateway: Gateway, items: Iterable[Any]) -> Any:
    result = gateway.cls("java.util.ArrayList")()
    for item in items:
        result.add(item)
    return result
