"""Compute the rows of a merge from its clauses, and write them on executors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import quoted_name
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.merge.explicit import ExplicitClause
from lancelake.spark.merge.fetch import by_fragment, with_columns
from lancelake.spark.merge.rows_out import (
    ADDRESS,
    REMOVES,
    ROW_ID,
    CarriedColumns,
    KeyColumns,
    Parts,
    WriteParts,
    together,
)
from lancelake.spark.reading.needed_columns import Build, empty_frame, needed_columns
from lancelake.spark.reading.target_frame import target_frame
from lancelake.spark.types import supported_schema
from lancelake.suggest import suggestion
from lancelake.table.merge.clauses import DeleteRow, InsertValues
from lancelake.table.merge.key_index import KeyLookup
from lancelake.table.row_steps.files import row_files

ACTION = "__lance_action"
"""Column with the number of the clause that applies to a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """The columns of a version, to which rows are written on executors."""

    base: Snapshot
    schema: t.StructType
    """The table's columns in Spark types; those that Spark does not support are carried."""

    columns: tuple[str, ...]
    kept: frozenset[str] = frozenset()
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
        kept = frozenset(names) - frozenset(assigned)
        return TableRows(base=base, schema=schema, columns=names, kept=kept)

    def written(self, frames: Sequence[DataFrame], key: KeyColumns | None, what: str) -> Parts:
        """Write the rows of frames on the executors."""
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
        return together(on_partitions(every, work, description=f"{what} {self.base.location.uri}"))

    @property
    def _carried(self) -> frozenset[str]:
        every = frozenset(self.base.manifest.schema.names)
        return (every - frozenset(self.columns)) | self.kept


class Maker(Protocol):
    """Computes the rows of clauses, which refer to columns by name or by id."""

    @property
    def rows(self) -> TableRows:
        """The columns of the table."""

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

    def changed(
        self, rows: DataFrame, clauses: Sequence[Any], *, are_near: bool = False
    ) -> DataFrame:
        """Return updated rows, fetching the columns that the clauses need.

        Rows that are near each other are ordered by address already.
        """

    def new(self, rows: DataFrame, clauses: Sequence[Any]) -> DataFrame:
        """Return new rows computed from source rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Computes new rows of a version; expressions refer to the sides by alias."""

    rows: TableRows
    target_name: str
    source_name: str | None = None
    source_columns: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self.rows.columns

    def addressed(
        self,
        spark: SparkSession,
        condition: Column,  # noqa: ARG002
        build: Build,
        lookup: KeyLookup | None = None,
    ) -> DataFrame:
        """Return the table columns that `build` needs, with row addresses."""
        return addressed_frame(spark, self.rows.base, needed_columns(build, self.columns), lookup)

    def changed(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], *, are_near: bool = False
    ) -> DataFrame:
        """Return updated rows, fetching the columns that the clauses need."""
        needed = self._needed(rows, clauses)
        if needed:
            near = rows if are_near else by_fragment(rows)
            rows = with_columns(near, self.rows.base, needed, self.target_name)
        return self._by_names(rows, clauses, needed)

    def new(self, rows: DataFrame, clauses: Sequence[InsertValues[Column]]) -> DataFrame:
        """Return new rows computed from source rows."""
        name = self.source_name or ""
        whole = f.struct(*[f.col(quoted_name(c)) for c in self.source_columns]).alias(name)
        shown = [f.col(quoted_name(c)) for c in self.source_columns if c.lower() != name.lower()]
        return self._outputs(rows.select(whole, *shown), clauses, is_new=True)

    def _needed(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> tuple[str, ...]:
        """Return the table columns that rows need: unchanged ones, and those in expressions."""
        expressions = [c.condition for c in clauses if c.condition is not None]
        kept: set[str] = set()
        for clause in clauses:
            if not isinstance(clause, DeleteRow):
                values = self._values(clause)
                expressions += values.values()
                kept |= set(self.columns) - set(values)

        def build(columns: Sequence[str]) -> DataFrame:
            struct = t.StructType([self.rows.schema[c] for c in columns])
            fetched = [t.StructField(self.target_name, struct)] if columns else []
            empty = empty_frame(rows.sparkSession, [*rows.schema.fields, *fetched])
            return self._by_names(empty, clauses, columns)

        return needed_columns(build, self.columns, tuple(kept))

    def _by_names(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], needed: Sequence[str]
    ) -> DataFrame:
        return self._outputs(self._with_plain_names(rows, needed), clauses, is_new=False)

    def _with_plain_names(self, rows: DataFrame, needed: Sequence[str]) -> DataFrame:
        """Allow unqualified references to columns that only one side has."""
        target, source = self.target_name, self.source_name
        has_source = source is not None and source in rows.columns
        theirs = {c.lower() for c in self.source_columns} if has_source else set()
        mine = {c.lower() for c in self.columns}
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
        by_lower = {name.lower(): name for name in self.columns}
        unknown = [name for name in clause.values if name.lower() not in by_lower]
        if unknown:
            problem = f"column {unknown[0]} is not in the table"
            advice = suggestion(unknown[0], self.columns, "columns")
            raise InvalidRequestError(problem, column=unknown[0], action=advice)
        return {by_lower[name.lower()]: value for name, value in clause.values.items()}

    def _outputs(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], *, is_new: bool
    ) -> DataFrame:
        """Compute each row with the first clause whose condition is true."""
        values = [self._values(clause) for clause in clauses]
        removes = [i for i, clause in enumerate(clauses) if isinstance(clause, DeleteRow)]
        assigned = {i: found for i, found in enumerate(values) if i not in removes}
        return acting(rows, [clause.condition for clause in clauses]).select(
            *[self._output(field, assigned, is_new=is_new) for field in self.rows.schema.fields],
            *row_columns(removes, is_new=is_new),
        )

    def _output(
        self, field: t.StructField, values: Mapping[int, Mapping[str, Column]], *, is_new: bool
    ) -> Column:
        """Return the value of a column over all clauses."""
        found: Column = f.lit(None).cast(field.dataType)
        for number, assigned in reversed(list(values.items())):
            value = assigned.get(field.name)
            if value is None:
                value = (
                    f.lit(None)
                    if is_new
                    else f.col(f"{self.target_name}.{quoted_name(field.name)}")
                )
            found = f.when(f.col(ACTION) == number, value.cast(field.dataType)).otherwise(found)
        return found.alias(field.name)


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
