"""Compute the rows of a merge from its clauses, and write them on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import quoted_name
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.merge.binding import Binding
from lancelake.spark.merge.explicit import ExplicitClause
from lancelake.spark.merge.fetch import with_columns
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
from lancelake.spark.types import supported_schema
from lancelake.suggest import suggestion
from lancelake.table.merge.clauses import DeleteRow, InsertValues
from lancelake.table.row_steps.files import row_files

_ACTION = "__lance_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Computes new rows of a version; expressions refer to the sides by alias."""

    base: Snapshot
    target_name: str
    source_name: str | None = None
    source_columns: tuple[str, ...] = ()
    binding: Binding | None = None

    @property
    def schema(self) -> t.StructType:
        """The table's columns in Spark types; those that Spark does not support are carried."""
        return supported_schema(self.base.manifest.schema)

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return list(self.schema.fieldNames())

    def named(self, expression: Column, build: Build) -> tuple[str, ...]:
        """Return the table columns that an expression refers to; `build` creates the frame."""
        if self.binding is not None:
            return self.binding.named([expression])
        return needed_columns(build, self.columns)

    def changed(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> DataFrame:
        """Return updated rows, fetching the columns that the clauses need."""
        needed = self._needed(rows, clauses)
        if needed:
            rows = with_columns(rows, self.base, needed, self.target_name)
        if self.binding is None:
            return self._by_names(rows, clauses, needed)
        renewed = self.binding.renewed()
        sides = ((self.target_name, needed), (self.source_name or "", self.source_columns))
        rows = renewed.binding.unpacked(rows, *sides)
        return self._changes(rows, [renewed.clause(clause) for clause in clauses])

    def new(self, rows: DataFrame, clauses: Sequence[InsertValues[Column]]) -> DataFrame:
        """Return new rows computed from source rows."""
        name = self.source_name or ""
        whole = f.struct(*[f.col(quoted_name(c)) for c in self.source_columns]).alias(name)
        shown = [f.col(quoted_name(c)) for c in self.source_columns if c.lower() != name.lower()]
        none = f.lit(None).cast(t.LongType())
        return self._outputs(rows.select(whole, *shown), clauses, address=none, row_id=none)

    def _needed(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> tuple[str, ...]:
        """Return the table columns that rows need: unchanged ones, and those in expressions."""
        expressions = [c.condition for c in clauses if c.condition is not None]
        kept: set[str] = set()
        for clause in clauses:
            if not isinstance(clause, DeleteRow):
                values = self._values(clause)
                expressions += values.values()
                kept |= set(self.columns) - set(values)
        if self.binding is not None:
            kept |= set(self.binding.named(expressions))
            return tuple(c for c in self.columns if c in kept)

        def build(columns: Sequence[str]) -> DataFrame:
            struct = t.StructType([self.schema[c] for c in columns])
            fetched = [t.StructField(self.target_name, struct)] if columns else []
            empty = empty_frame(rows.sparkSession, [*rows.schema.fields, *fetched])
            return self._by_names(empty, clauses, columns)

        return needed_columns(build, self.columns, tuple(kept))

    def _by_names(
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], needed: Sequence[str]
    ) -> DataFrame:
        return self._changes(self._with_plain_names(rows, needed), clauses)

    def _changes(self, rows: DataFrame, clauses: Sequence[ExplicitClause]) -> DataFrame:
        return self._outputs(rows, clauses, address=f.col(ADDRESS), row_id=f.col(ROW_ID))

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
        self, rows: DataFrame, clauses: Sequence[ExplicitClause], *, address: Column, row_id: Column
    ) -> DataFrame:
        """Compute each row with the first clause whose condition is true."""
        action: Column = f.lit(None).cast(t.IntegerType())
        for number, clause in reversed(list(enumerate(clauses))):
            condition = f.lit(True) if clause.condition is None else clause.condition
            action = f.when(condition, f.lit(number)).otherwise(action)
        acting = rows.withColumn(_ACTION, action).where(f.col(_ACTION).isNotNull())
        removes = [i for i, clause in enumerate(clauses) if isinstance(clause, DeleteRow)]
        is_new = ADDRESS not in rows.columns
        return acting.select(
            *[self._output(field, clauses, is_new=is_new) for field in self.schema.fields],
            address.alias(ADDRESS),
            row_id.alias(ROW_ID),
            f.col(_ACTION).isin(removes).alias(REMOVES),
        )

    def _output(
        self, field: t.StructField, clauses: Sequence[ExplicitClause], *, is_new: bool
    ) -> Column:
        """Return the value of a column over all clauses."""
        found: Column = f.lit(None).cast(field.dataType)
        for number, clause in reversed(list(enumerate(clauses))):
            if isinstance(clause, DeleteRow):
                continue
            value = self._values(clause).get(field.name)
            if value is None:
                value = (
                    f.lit(None)
                    if is_new
                    else f.col(f"{self.target_name}.{quoted_name(field.name)}")
                )
            found = f.when(f.col(_ACTION) == number, value.cast(field.dataType)).otherwise(found)
        return found.alias(field.name)

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
            carried=CarriedColumns.of(self.base, self.columns),
        )
        return together(on_partitions(every, work, description=f"{what} {self.base.location.uri}"))
