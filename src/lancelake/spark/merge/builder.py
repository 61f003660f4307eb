"""`LanceMergeBuilder`: a merge built from clauses, modelled on Delta's builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.commit.snapshot import Snapshot
from lancelake.format.frozen import FrozenMap
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.merge.execute import MergeRequest, execute_merge
from lancelake.table.merge.clauses import (
    Clauses,
    DeleteRow,
    InsertAll,
    InsertValues,
    MatchedBy,
    NotMatchedBy,
    NotMatchedBySourceBy,
    UpdateAll,
    UpdateSet,
)

Expression = Column | str
Values = Mapping[str, Expression]


class MergeTarget(Protocol):
    """The table that a merge changes: `LanceTable`."""

    @property
    def name_in_expressions(self) -> str:
        """The name of the table in expressions."""
        ...

    def snapshot(self) -> Snapshot:
        """Open the newest version."""
        ...


class LanceMergeBuilder:
    """A merge of a DataFrame into a table: clauses first, then `execute`.

    Of several clauses for the same kind of row, the first whose condition is true applies.
    Expressions refer to the sides by their aliases, by default `target` and `source`.
    """

    def __init__(self, table: MergeTarget, source: DataFrame, condition: Expression) -> None:
        """Start a merge; every method returns the builder."""
        self._table = table
        self._merge_of = (source, condition)
        self._matched: list[MatchedBy[Column]] = []
        self._not_matched: list[NotMatchedBy[Column]] = []
        self._not_matched_by_source: list[NotMatchedBySourceBy[Column]] = []
        self._adds_columns = False

    def whenMatchedUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of matched rows."""
        clause = UpdateSet(values=as_values(set or {}), condition=_condition(condition))
        self._matched.append(clause)
        return self

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Set all columns of matched rows that the source has."""
        self._matched.append(UpdateAll(condition=_condition(condition)))
        return self

    def whenMatchedDelete(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Delete matched rows."""
        self._matched.append(DeleteRow(condition=_condition(condition)))
        return self

    def whenNotMatchedInsert(
        self, condition: Expression | None = None, values: Values | None = None
    ) -> LanceMergeBuilder:
        """Insert rows with these values; other columns are null."""
        clause = InsertValues(values=as_values(values or {}), condition=_condition(condition))
        self._not_matched.append(clause)
        return self

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Insert source rows without a match."""
        self._not_matched.append(InsertAll(condition=_condition(condition)))
        return self

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of rows not matched by the source."""
        clause = UpdateSet(values=as_values(set or {}), condition=_condition(condition))
        self._not_matched_by_source.append(clause)
        return self

    def whenNotMatchedBySourceDelete(
        self, condition: Expression | None = None
    ) -> LanceMergeBuilder:
        """Delete rows not matched by the source."""
        self._not_matched_by_source.append(DeleteRow(condition=_condition(condition)))
        return self

    def withSchemaEvolution(self) -> LanceMergeBuilder:
        """Add columns to the table that only the source has."""
        self._adds_columns = True
        return self

    def execute(self) -> DataFrame:
        """Merge and commit; returns a row with the counts."""
        source, condition = self._merge_of
        request = MergeRequest(
            source=source,
            condition=as_column(condition),
            clauses=Clauses(
                matched=tuple(self._matched),
                not_matched=tuple(self._not_matched),
                not_matched_by_source=tuple(self._not_matched_by_source),
            ),
            target_name=self._table.name_in_expressions,
            source_name=alias_of(source) or "source",
            adds_columns=self._adds_columns,
        )
        counts = execute_merge(self._table.snapshot(), request).counts
        affected = counts.inserted + counts.updated + counts.deleted
        return source.sparkSession.createDataFrame(
            [(affected, counts.updated, counts.deleted, counts.inserted)],
            "num_affected_rows long, num_updated_rows long, num_deleted_rows long, "
            "num_inserted_rows long",
        )


def alias_of(frame: DataFrame) -> str | None:
    """Return the alias of a DataFrame; None without one."""
    if not is_classic(frame.sparkSession):
        return getattr(frame._plan, "_alias", None)
    plan = frame._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() == "SubqueryAlias" else None


def as_values(values: Values) -> FrozenMap[str, Column]:
    """Return expressions as columns, by the name of the assigned column."""
    return FrozenMap({name: as_column(value) for name, value in values.items()})


def as_column(expression: Expression) -> Column:
    """Return an expression as a column."""
    return f.expr(expression) if isinstance(expression, str) else expression


def _condition(condition: Expression | None) -> Column | None:
    return None if condition is None else as_column(condition)
