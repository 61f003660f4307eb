"""Rows as a merge leaves them: the clause that acts makes them, executors write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.data.write_task import WriteTask
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.spark.merge.binding import Binding
from lancelake.spark.merge.clauses import Clause, Remove, SetColumns
from lancelake.spark.merge.fetch import with_columns
from lancelake.spark.merge.names import columns_named
from lancelake.spark.merge.rows_out import (
    ADDRESS,
    REMOVES,
    ROW_ID,
    KeyColumns,
    Parts,
    WriteParts,
    together,
)
from lancelake.spark.partition_job import on_partitions
from lancelake.spark.types import spark_schema
from lancelake.table.snapshot import Snapshot

_ACTION = "__lance_action"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Makes rows of a version anew; expressions name the sides by `target_name`, `source_name`."""

    base: Snapshot
    target_name: str
    source_name: str | None = None
    source_columns: tuple[str, ...] = ()
    binding: Binding | None = None

    @property
    def schema(self) -> t.StructType:
        """The table's columns as Spark sees them."""
        return spark_schema(self.base.manifest.schema)

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return list(self.schema.fieldNames())

    def named(self, expressions: Sequence[Column | str]) -> tuple[str, ...] | None:
        """Return the table's columns that expressions name; None when that cannot be told."""
        if self.binding is not None:
            return self.binding.named(expressions)
        return columns_named(expressions, self.columns)

    def changed(self, rows: DataFrame, clauses: Sequence[Clause]) -> DataFrame:
        """Return rows as they will be, with the columns that clauses need fetched."""
        needed = self._needed(clauses)
        if needed:
            rows = with_columns(rows, self.base, needed, self.target_name)
        if self.binding is None:
            rows = self._with_plain_names(rows, needed)
        else:
            renewed = self.binding.renewed()
            sides = ((self.target_name, needed), (self.source_name or "", self.source_columns))
            rows = renewed.binding.unpacked(rows, *sides)
            clauses = [renewed.clause(clause) for clause in clauses]
        return self._outputs(rows, clauses, address=f.col(ADDRESS), row_id=f.col(ROW_ID))

    def new(self, rows: DataFrame, clauses: Sequence[SetColumns]) -> DataFrame:
        """Return new rows made from rows of the source."""
        name = self.source_name or ""
        whole = f.struct(*[f.col(quoted(c)) for c in self.source_columns]).alias(name)
        shown = [f.col(quoted(c)) for c in self.source_columns if c.lower() != name.lower()]
        none = f.lit(None).cast(t.LongType())
        return self._outputs(rows.select(whole, *shown), clauses, address=none, row_id=none)

    def _needed(self, clauses: Sequence[Clause]) -> tuple[str, ...]:
        """Return the table's columns that go into rows: kept ones, and those expressions name."""
        expressions: list[Column | str] = [c.condition for c in clauses if c.condition is not None]
        kept: set[str] = set()
        for clause in clauses:
            if isinstance(clause, SetColumns):
                values = self._values(clause)
                expressions += [] if clause.values is None else list(values.values())
                kept |= set(self.columns) - set(values)
        named = self.named(expressions)
        wanted = set(self.columns) if named is None else kept | set(named)
        return tuple(c for c in self.columns if c in wanted)

    def _with_plain_names(self, rows: DataFrame, needed: Sequence[str]) -> DataFrame:
        """Let columns that only one side has be named without it."""
        target, source = self.target_name, self.source_name
        has_source = source is not None and source in rows.columns
        theirs = {c.lower() for c in self.source_columns} if has_source else set()
        mine = {c.lower() for c in self.columns}
        taken = {c.lower() for c in rows.columns}
        plain = {
            c: f.col(f"{target}.{quoted(c)}")
            for c in needed
            if c.lower() not in theirs and c.lower() not in taken
        }
        if has_source:
            plain |= {
                c: f.col(f"{source}.{quoted(c)}")
                for c in self.source_columns
                if c.lower() not in mine and c.lower() not in taken
            }
        return rows.withColumns(plain) if plain else rows

    def _values(self, clause: SetColumns) -> dict[str, Column]:
        """Return the values of a clause by the table's names."""
        by_lower = {name.lower(): name for name in self.columns}
        if clause.values is None:
            name = self.source_name
            unknown = [c for c in self.source_columns if c.lower() not in by_lower]
            if unknown:
                raise SchemaMismatchError(
                    f"the source has columns that the table does not have: {', '.join(unknown)}",
                    path=unknown[0],
                    action="Leave them out, or use withSchemaEvolution().",
                )
            return {by_lower[c.lower()]: f.col(f"{name}.{quoted(c)}") for c in self.source_columns}
        found: dict[str, Column] = {}
        for key, value in clause.values.items():
            plain = key if self.binding else key.rpartition(".")[2].strip("`")
            column = by_lower.get(plain.lower())
            if column is None:
                known = ", ".join(self.columns)
                raise InvalidRequestError(
                    f"column {key} is not in the table, which has: {known}", column=key
                )
            found[column] = value
        return found

    def _outputs(
        self, rows: DataFrame, clauses: Sequence[Clause], *, address: Column, row_id: Column
    ) -> DataFrame:
        """Let the first clause whose condition holds make each row."""
        action: Column = f.lit(None).cast(t.IntegerType())
        for number, clause in reversed(list(enumerate(clauses))):
            condition = f.lit(True) if clause.condition is None else clause.condition
            action = f.when(condition, f.lit(number)).otherwise(action)
        acting = rows.withColumn(_ACTION, action).where(f.col(_ACTION).isNotNull())
        removes = [i for i, clause in enumerate(clauses) if isinstance(clause, Remove)]
        is_new = ADDRESS not in rows.columns
        return acting.select(
            *[self._output(field, clauses, is_new=is_new) for field in self.schema.fields],
            address.alias(ADDRESS),
            row_id.alias(ROW_ID),
            f.col(_ACTION).isin(removes).alias(REMOVES),
        )

    def _output(self, field: t.StructField, clauses: Sequence[Clause], *, is_new: bool) -> Column:
        """Return the value of a column, whichever clause acts."""
        found: Column = f.lit(None).cast(field.dataType)
        for number, clause in reversed(list(enumerate(clauses))):
            if isinstance(clause, Remove):
                continue
            value = self._values(clause).get(field.name)
            if value is None:
                value = f.lit(None) if is_new else f.col(f"{self.target_name}.{quoted(field.name)}")
            found = f.when(f.col(_ACTION) == number, value.cast(field.dataType)).otherwise(found)
        return found.alias(field.name)

    def written(self, frames: Sequence[DataFrame], key: KeyColumns | None, what: str) -> Parts:
        """Write the rows of frames on the executors."""
        every = frames[0]
        for frame in frames[1:]:
            every = every.unionAll(frame)
        task = WriteTask(
            root=self.base.location,
            schema=self.base.manifest.schema,
            file_version=self.base.manifest.data_version,
            casts=True,
        )
        keeps_row_ids = self.base.manifest.has_stable_row_ids
        work = WriteParts(task=task, key=key, keeps_row_ids=keeps_row_ids)
        return together(on_partitions(every, work, description=f"{what} {self.base.location.uri}"))


def quoted(name: str) -> str:
    """Return a name as Spark's expressions take any name."""
    return "`" + name.replace("`", "``") + "`"
