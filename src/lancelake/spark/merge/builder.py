"""A merge put together clause by clause, shaped like Delta's builder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.spark.jvm.door import is_classic
from lancelake.spark.merge.clauses import Clauses, Remove, SetColumns
from lancelake.spark.merge.run import FrameMerge, as_column, merge_frame

if TYPE_CHECKING:  # a builder belongs to a table, which makes builders
    from lancelake.spark.lance_table import LanceTable

Expression = Column | str
Values = Mapping[str, Expression]


class LanceMergeBuilder:
    """A merge of a DataFrame into a table: clauses first, then `execute`.

    Of several clauses for the same kind of row the first whose condition holds acts. Expressions
    name the sides by their aliases, `target` and `source` when they have none.
    """

    def __init__(self, table: LanceTable, source: DataFrame, condition: Expression) -> None:
        """Start a merge; every method returns the builder."""
        self._table = table
        self._merge_of = (source, condition)
        self._clauses = Clauses()
        self._adds_columns = False

    def whenMatchedUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of rows that the source matches."""
        return self._matched(SetColumns(values=_values(set), condition=_condition(condition)))

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Set the columns that the source has."""
        return self._matched(SetColumns(values=None, condition=_condition(condition)))

    def whenMatchedDelete(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Delete rows that the source matches."""
        return self._matched(Remove(condition=_condition(condition)))

    def whenNotMatchedInsert(
        self, condition: Expression | None = None, values: Values | None = None
    ) -> LanceMergeBuilder:
        """Add rows of these values; columns not named are null."""
        return self._new(SetColumns(values=_values(values), condition=_condition(condition)))

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Add source rows that match nothing."""
        return self._new(SetColumns(values=None, condition=_condition(condition)))

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of rows that no source row matches."""
        clause = SetColumns(values=_values(set), condition=_condition(condition))
        return self._lonely(clause)

    def whenNotMatchedBySourceDelete(
        self, condition: Expression | None = None
    ) -> LanceMergeBuilder:
        """Delete rows that no source row matches."""
        return self._lonely(Remove(condition=_condition(condition)))

    def withSchemaEvolution(self) -> LanceMergeBuilder:
        """Add columns to the table that only the source has."""
        self._adds_columns = True
        return self

    def execute(self) -> DataFrame:
        """Merge and commit; the one row that comes back counts what was done."""
        source, condition = self._merge_of
        merge = FrameMerge(
            source=source,
            condition=condition,
            clauses=self._clauses,
            target_name=self._table.name_in_expressions,
            source_name=alias_of(source) or "source",
            adds_columns=self._adds_columns,
        )
        counts = merge_frame(self._table.snapshot(), merge).counts
        affected = counts.inserted + counts.updated + counts.deleted
        return source.sparkSession.createDataFrame(
            [(affected, counts.updated, counts.deleted, counts.inserted)],
            "num_affected_rows long, num_updated_rows long, num_deleted_rows long, "
            "num_inserted_rows long",
        )

    def _matched(self, clause: SetColumns | Remove) -> LanceMergeBuilder:
        self._clauses = replace(self._clauses, matched=(*self._clauses.matched, clause))
        return self

    def _new(self, clause: SetColumns) -> LanceMergeBuilder:
        clauses = self._clauses
        self._clauses = replace(clauses, not_matched=(*clauses.not_matched, clause))
        return self

    def _lonely(self, clause: SetColumns | Remove) -> LanceMergeBuilder:
        clauses = self._clauses
        every = (*clauses.not_matched_by_source, clause)
        self._clauses = replace(clauses, not_matched_by_source=every)
        return self


def alias_of(frame: DataFrame) -> str | None:
    """Return the name that `alias` gave to a DataFrame; None without one."""
    if not is_classic(frame.sparkSession):
        return getattr(frame._plan, "_alias", None)
    plan = frame._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() == "SubqueryAlias" else None


def as_values(values: Values) -> dict[str, Column]:
    """Return expressions as columns, by the name that they are assigned to."""
    return {
        name: f.expr(value) if isinstance(value, str) else value for name, value in values.items()
    }


def _values(values: Values | None) -> dict[str, Column]:
    return as_values(values or {})


def _condition(condition: Expression | None) -> Column | None:
    return None if condition is None else as_column(condition)
