"""Rows of a merge on executors: computed from clauses, by Spark, and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import Snapshot, quoted_name
from lancelake.core.values.reads import KeyLookup, MetaColumn
from lancelake.core.values.writes import DeleteRow, InsertValues, UpdateSet
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.spark.jobs.binding import Binding, ResolvedClause
from lancelake.spark.jobs.engine import on_partitions
from lancelake.spark.jobs.rows_out import (
    ADDRESS,
    REMOVES,
    ROW_ID,
    CarriedColumns,
    Parts,
    WriteParts,
    combine,
    group_by_fragment,
    with_columns,
)
from lancelake.spark.jobs.target_frame import target_frame
from lancelake.spark.tasks.columns import Build, empty_frame, needed_columns
from lancelake.spark.values.spark_types import supported_schema
from lancelake.table.merge.match import TargetRows
from lancelake.table.merge.source import describe_key
from lancelake.table.merge.write import KeyColumns
from lancelake.table.row_steps import row_files

ACTION = "__lance_action"
"""Column with the number of the clause that applies to a row."""

Change = UpdateSet[Column] | DeleteRow[Column]
ExplicitClause = Change | InsertValues[Column]
Clause = TypeVar("Clause")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowClauses(Generic[Clause]):
    """The clauses of a merge without stars; of each kind, the first whose condition is true."""

    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()

    @property
    def every(self) -> tuple[Clause, ...]:
        """All clauses."""
        return (*self.matched, *self.not_matched, *self.not_matched_by_source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The columns of a version, to which rows are written on executors."""

    base: Snapshot
    schema: t.StructType
    """The table's columns in Spark types; those that Spark does not support are carried."""

    columns: tuple[str, ...]
    unchanged: frozenset[str] = frozenset()
    """Columns that no updated row changes: they are carried, too."""

    @staticmethod
    def of(base: Snapshot, assigned: Collection[str] | None = None) -> TableRows:
        """Convert the columns once: there may be thousands.

        `assigned` are the columns that updated rows change, if they are known.
        """
        schema = supported_schema(base.manifest.schema)
        names = tuple(schema.fieldNames())
        if assigned is None:
            return TableRows(base=base, schema=schema, columns=names)
        unchanged = frozenset(names) - frozenset(assigned)
        return TableRows(base=base, schema=schema, columns=names, unchanged=unchanged)

    def write(
        self,
        frames: Sequence[DataFrame],
        key: KeyColumns | None,
        what: str,
        naming: Callable[[], Sequence[str]] = tuple,
    ) -> Parts:
        """Write the rows of frames on the executors; `naming` returns columns that name a row."""
        every = frames[0]
        for frame in frames[1:]:
            every = every.unionAll(frame)
        keeps_row_ids = self.base.manifest.has_stable_row_ids
        work = WriteParts(
            task=row_files(self.base),
            key=key,
            keeps_row_ids=keeps_row_ids,
            carried=CarriedColumns.of(self.base, self._carried),
        )
        parts = on_partitions(every, work, description=f"{what} {self.base.location.uri}")
        return combine(parts, key, lambda address: self._describe(address, tuple(naming())))

    def _describe(self, address: int, names: tuple[str, ...]) -> str:
        """Return the values of columns of a row as text."""
        fields = tuple(f for f in self.base.manifest.schema.fields if f.name in names)
        target = TargetRows.of(self.base, tuple(field.name for field in fields))
        row = target.at(np.array([address], dtype=np.uint64)).to_pylist()[0]
        return describe_key([row[field.name] for field in fields], fields)

    @property
    def _carried(self) -> frozenset[str]:
        every = frozenset(self.base.manifest.schema.names)
        return (every - frozenset(self.columns)) | self.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker(ABC, Generic[Clause]):
    """Computes the rows of clauses for a version of the table."""

    rows: TableRows
    target_name: str
    source_name: str | None = None

    @abstractmethod
    def addressed(
        self,
        spark: SparkSession,
        condition: Column,
        build: Build,
        lookup: KeyLookup | None = None,
    ) -> DataFrame:
        """Return the table columns that a condition refers to, with row addresses.

        `build` creates a frame with the condition from columns of the table. With a lookup, rows
        without any of its keys may be left out.
        """

    @abstractmethod
    def new(self, rows: DataFrame, clauses: Sequence[Clause]) -> DataFrame:
        """Return new rows computed from source rows."""

    def changed(
        self, rows: DataFrame, clauses: Sequence[Clause], *, are_near: bool = False
    ) -> DataFrame:
        """Return updated rows, fetching the columns that the clauses need.

        Rows that are near each other are ordered by address already.
        """
        needed = self._needed(rows, clauses)
        if (needed or self._carries(clauses)) and not are_near:
            rows = group_by_fragment(rows)
        if needed:
            rows = with_columns(rows, self.rows.base, needed, self.target_name)
        return self._updated(rows, clauses, needed)

    @abstractmethod
    def _needed(self, rows: DataFrame, clauses: Sequence[Clause]) -> tuple[str, ...]:
        """Return the table columns that rows need: unchanged ones, and those in expressions."""

    @abstractmethod
    def _carries(self, clauses: Sequence[Clause]) -> bool:
        """Whether the writer of the rows fetches columns that no clause changes."""

    @abstractmethod
    def _updated(
        self, rows: DataFrame, clauses: Sequence[Clause], needed: Sequence[str]
    ) -> DataFrame: ...

    def _table_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that a clause assigns."""
        by_lower = {column.lower(): column for column in self.rows.columns}
        unknown = [name for name in names if name.lower() not in by_lower]
        if unknown:
            problem = f"column {unknown[0]} is not in the table"
            advice = suggestion(unknown[0], self.rows.columns, "columns")
            raise InvalidRequestError(problem, column=unknown[0], action=advice)
        return [by_lower[name.lower()] for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRowMaker(RowMaker[ExplicitClause]):
    """Computes rows by expressions that refer to the sides by alias."""

    source_columns: tuple[str, ...] = ()

    def addressed(
        self,
        spark: SparkSession,
        condition: Column,  # noqa: ARG002
        build: Build,
        lookup: KeyLookup | None = None,
    ) -> DataFrame:
        """Return the table columns that `build` needs, with row addresses."""
        needed = needed_columns(build, self.rows.columns)
        return addressed_frame(spark, self.rows.base, needed, lookup)

    def new(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> DataFrame:
        """Return new rows computed from source rows."""
        name = self.source_name or ""
        whole = f.struct(*[f.col(quoted_name(c)) for c in self.source_columns]).alias(name)
        plain = [f.col(quoted_name(c)) for c in self.source_columns if c.lower() != name.lower()]
        return self._outputs(rows.select(whole, *plain), clauses, is_new=True)

    def _needed(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> tuple[str, ...]:
        expressions = [c.condition for c in clauses if c.condition is not None]
        unchanged: set[str] = set()
        for clause in clauses:
            if not isinstance(clause, DeleteRow):
                values = self._values(clause)
                expressions += values.values()
                unchanged |= set(self.rows.columns) - set(values)

        def build(columns: Sequence[str]) -> DataFrame:
            struct = t.StructType([self.rows.schema[c] for c in columns])
            fetched = [t.StructField(self.target_name, struct)] if columns else []
            empty = empty_frame(rows.sparkSession, [*rows.schema.fields, *fetched])
            return self._updated(empty, clauses, columns)

        return needed_columns(build, self.rows.columns, tuple(unchanged))

    def _carries(self, clauses: Sequence[ExplicitClause]) -> bool:  # noqa: ARG002
        return False

    def _updated(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], needed: Sequence[str]
    ) -> DataFrame:
        return self._outputs(self._with_plain_names(rows, needed), clauses, is_new=False)

    def _with_plain_names(self, rows: DataFrame, needed: Sequence[str]) -> DataFrame:
        """Allow unqualified references to columns that only one side has."""
        target, source = self.target_name, self.source_name
        has_source = source is not None and source in rows.columns
        theirs = {c.lower() for c in self.source_columns} if has_source else set()
        mine = {c.lower() for c in self.rows.columns}
        taken = {c.lower() for c in rows.columns}
        plain = {
            c: f.col(f"{target}.{quoted_name(c)}")
            for c in needed
            if c.lower() not in theirs and c.lower() not in taken
        }
        if has_source:
            plain |= {
                c: f.col(f"{source}.{quoted_name(c)}")
                for c in self.source_columns
                if c.lower() not in mine and c.lower() not in taken
            }
        return rows.withColumns(plain) if plain else rows

    def _values(self, clause: ExplicitClause) -> dict[str, Column]:
        """Return the values of a clause by table column."""
        if isinstance(clause, DeleteRow):
            return {}
        columns = self._table_columns(tuple(clause.values))
        return dict(zip(columns, clause.values.values(), strict=True))

    def _outputs(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], *, is_new: bool
    ) -> DataFrame:
        """Compute each row with the first clause whose condition is true."""
        values = [self._values(clause) for clause in clauses]
        removes = [i for i, clause in enumerate(clauses) if isinstance(clause, DeleteRow)]
        assigned = {i: columns for i, columns in enumerate(values) if i not in removes}
        return acting(rows, [clause.condition for clause in clauses]).select(
            *[self._output(field, assigned, is_new=is_new) for field in self.rows.schema.fields],
            *row_columns(removes, is_new=is_new),
        )

    def _output(
        self, field: t.StructField, values: Mapping[int, Mapping[str, Column]], *, is_new: bool
    ) -> Column:
        """Return the value of a column over all clauses."""
        result: Column = f.lit(None).cast(field.dataType)
        for number, assigned in reversed(list(values.items())):
            value = assigned.get(field.name)
            if value is None:
                value = (
                    f.lit(None)
                    if is_new
                    else f.col(f"{self.target_name}.{quoted_name(field.name)}")
                )
            result = f.when(f.col(ACTION) == number, value.cast(field.dataType)).otherwise(result)
        return result.alias(field.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRowMaker(RowMaker[ResolvedClause]):
    """Computes rows by expressions that stay in Java; its calls are as many as the clauses."""

    has_new_rows: bool
    """Whether updated rows are written together with new ones, and so have the same columns."""

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

    def new(self, rows: DataFrame, clauses: Sequence[ResolvedClause]) -> DataFrame:
        """Return new rows computed from source rows."""
        self._ensure_assignable(clauses)
        return self._outputs(rows, clauses, is_new=True)

    def _needed(
        self,
        rows: DataFrame,  # noqa: ARG002
        clauses: Sequence[ResolvedClause],
    ) -> tuple[str, ...]:
        self._ensure_assignable(clauses)
        needed = set(self.binding.named_by(clauses))
        for clause in clauses:
            if clause.assigns is not None:
                needed |= set(self.rows.columns) - self.rows.unchanged - set(clause.assigns)
        return tuple(column for column in self.rows.columns if column in needed)

    def _carries(self, clauses: Sequence[ResolvedClause]) -> bool:
        return bool(self.rows.unchanged) and any(c.assigns is not None for c in clauses)

    def _updated(
        self,
        rows: DataFrame,
        clauses: Sequence[ResolvedClause],
        needed: Sequence[str],  # noqa: ARG002
    ) -> DataFrame:
        sides = (self.target_name, self.source_name)
        unpacked, renewed = self.binding.unpacked(rows, clauses, sides)
        return self._outputs(unpacked, renewed, is_new=False)

    def _ensure_assignable(self, clauses: Sequence[ResolvedClause]) -> None:
        """Refuse to assign a column that was dropped after the command was resolved."""
        for clause in clauses:
            self._table_columns(clause.assigns or ())

    def _outputs(
        self, rows: DataFrame, clauses: Sequence[ResolvedClause], *, is_new: bool
    ) -> DataFrame:
        removes = [number for number, clause in enumerate(clauses) if clause.assigns is None]
        carried = frozenset[str]() if is_new else self.rows.unchanged
        return self.binding.outputs(
            acting(rows, [clause.condition for clause in clauses]),
            _without(self.rows.schema, frozenset() if self.has_new_rows else carried),
            _without(self.rows.schema, carried),
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
    clauses: RowClauses[Any],
) -> RowMaker[Any]:
    """Return what computes the rows of a version; a resolved command has a binding."""
    if binding is None:
        return NamedRowMaker(
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


def addressed_frame(
    spark: SparkSession,
    base: Snapshot,
    columns: Sequence[str],
    lookup: KeyLookup | None = None,
) -> DataFrame:
    """Return columns of a version, with row addresses and row ids."""
    metas = [MetaColumn.ROW_ADDRESS.value, MetaColumn.ROW_ID.value]
    frame = target_frame(spark, base, columns, metas, lookup)
    return frame.withColumnsRenamed({metas[0]: ADDRESS, metas[1]: ROW_ID})


def acting(rows: DataFrame, conditions: Sequence[Column | None]) -> DataFrame:
    """Return the rows to which a clause applies, with the number of the first such clause."""
    action: Column = f.lit(None).cast(t.IntegerType())
    for number, condition in reversed(list(enumerate(conditions))):
        holds = f.lit(True) if condition is None else condition
        action = f.when(holds, f.lit(number)).otherwise(action)
    return rows.withColumn(ACTION, action).where(f.col(ACTION).isNotNull())


def row_columns(removes: Sequence[int], *, is_new: bool) -> list[Column]:
    """Return the columns that identify the changed row, and state whether it is deleted."""
    none = f.lit(None).cast(t.LongType())
    return [
        (none if is_new else f.col(ADDRESS)).alias(ADDRESS),
        (none if is_new else f.col(ROW_ID)).alias(ROW_ID),
        f.col(ACTION).isin(list(removes)).alias(REMOVES),
    ]
