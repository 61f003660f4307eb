"""Compute the rows of a resolved command, whose expressions stay in Java."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.spark.merge.binding import Binding, ResolvedClause, ResolvedClauses
from lancelake.spark.merge.explicit import ExplicitClauses
from lancelake.spark.merge.fetch import by_fragment, with_columns
from lancelake.spark.merge.row_maker import (
    ACTION,
    Maker,
    RowMaker,
    TableRows,
    acting,
    addressed_frame,
    row_columns,
)
from lancelake.spark.reading.needed_columns import Build
from lancelake.suggest import suggestion
from lancelake.table.merge.key_index import KeyLookup


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRowMaker:
    """Computes new rows of a version; the number of calls to Java is that of the clauses."""

    rows: TableRows
    has_new_rows: bool
    """Whether updated rows are written together with new ones, and so have the same columns."""

    target_name: str
    source_name: str | None = None
    binding: Binding

    def addressed(
        self,
        spark: SparkSession,
        condition: Column,
        build: Build,  # noqa: ARG002
        lookup: KeyLookup | None = None,
    ) -> DataFrame:
        """Return the table columns that a condition refers to, with their ids and row addresses."""
        named = self.binding.named([condition])
        return self.binding.of_target(addressed_frame(spark, self.rows.base, named, lookup))

    def changed(
        self, rows: DataFrame, clauses: Sequence[ResolvedClause], *, are_near: bool = False
    ) -> DataFrame:
        """Return updated rows, fetching the columns that the clauses need."""
        needed = self._needed(clauses)
        fetches = self.rows.kept and any(clause.assigns is not None for clause in clauses)
        if (needed or fetches) and not are_near:
            rows = by_fragment(rows)
        if needed:
            rows = with_columns(rows, self.rows.base, needed, self.target_name)
        sides = (self.target_name, self.source_name)
        unpacked, renewed = self.binding.unpacked(rows, clauses, sides)
        return self._outputs(unpacked, renewed, is_new=False)

    def new(self, rows: DataFrame, clauses: Sequence[ResolvedClause]) -> DataFrame:
        """Return new rows computed from source rows."""
        self._ensure_known(clauses)
        return self._outputs(rows, clauses, is_new=True)

    def _needed(self, clauses: Sequence[ResolvedClause]) -> tuple[str, ...]:
        """Return the table columns that rows need: unchanged ones, and those in expressions."""
        self._ensure_known(clauses)
        needed = set(self.binding.named_by(clauses))
        for clause in clauses:
            if clause.assigns is not None:
                needed |= set(self.rows.columns) - self.rows.kept - set(clause.assigns)
        return tuple(column for column in self.rows.columns if column in needed)

    def _ensure_known(self, clauses: Sequence[ResolvedClause]) -> None:
        """Refuse to assign a column that was dropped after the command was resolved."""
        known = set(self.rows.columns)
        for clause in clauses:
            for name in clause.assigns or ():
                if name not in known:
                    advice = suggestion(name, self.rows.columns, "columns")
                    problem = f"column {name} is not in the table"
                    raise InvalidRequestError(problem, column=name, action=advice)

    def _outputs(
        self, rows: DataFrame, clauses: Sequence[ResolvedClause], *, is_new: bool
    ) -> DataFrame:
        removes = [number for number, clause in enumerate(clauses) if clause.assigns is None]
        kept = frozenset[str]() if is_new else self.rows.kept
        return self.binding.outputs(
            acting(rows, [clause.condition for clause in clauses]),
            _without(self.rows.schema, frozenset() if self.has_new_rows else kept),
            _without(self.rows.schema, kept),
            clauses,
            action=ACTION,
            target_name=None if is_new else self.target_name,
            more=row_columns(removes, is_new=is_new),
        )


def _without(schema: t.StructType, names: frozenset[str]) -> t.StructType:
    return t.StructType([field for field in schema.fields if field.name not in names])


def maker_of(
    base: Snapshot,
    target_name: str,
    *,
    source_name: str | None = None,
    source_columns: tuple[str, ...] = (),
    binding: Binding | None,
    clauses: ResolvedClauses | ExplicitClauses,
) -> Maker:
    """Return what computes the rows of a version; a resolved command has a binding."""
    if binding is None or isinstance(clauses, ExplicitClauses):
        return RowMaker(
            rows=TableRows.of(base),
            target_name=target_name,
            source_name=source_name,
            source_columns=source_columns,
        )
    changes = (*clauses.matched, *clauses.not_matched_by_source)
    assigned = {name for clause in changes for name in clause.assigns or ()}
    return BoundRowMaker(
        rows=TableRows.of(base, assigned),
        has_new_rows=bool(clauses.not_matched),
        target_name=target_name,
        source_name=source_name,
        binding=binding,
    )
