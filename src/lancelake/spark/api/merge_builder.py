"""`LanceMergeBuilder`: a merge built from clauses, modelled on Delta's builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import Column, DataFrame

from lancelake.core.values.metadata import FrozenMap, Snapshot
from lancelake.core.values.writes import (
    Clauses,
    DeleteRow,
    InsertAll,
    InsertValues,
    UpdateAll,
    UpdateSet,
)
from lancelake.spark.connector.row_commands import MergeRequest, execute_merge
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.values.options import Expression, as_column
from lancelake.table.merge.clauses import MatchedBy, NotMatchedBy, NotMatchedBySourceBy

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

    Examples:
        >>> source = spark.createDataFrame([(4, "di", 4.5)], table.toDF().schema)
        >>> merge = table.merge(source, "target.id = source.id")
        >>> merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        >>> merge.execute().first().num_inserted_rows
        1
    """

    def __init__(self, table: MergeTarget, source: DataFrame, condition: Expression) -> None:
        """Start a merge; every method returns the builder."""
        self._table = table
        self._merge_of = (source, condition)
        self._matched: list[MatchedBy[Column]] = []
        self._not_matched: list[NotMatchedBy[Column]] = []
        self._not_matched_by_source: list[NotMatchedBySourceBy[Column]] = []
        self._adds_columns = False

    def __repr__(self) -> str:
        return f"LanceMergeBuilder({self._table!r}, {self._merge_of[1]!r})"

    def whenMatchedUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of matched rows.

        Args:
            condition: Condition on both sides, as SQL text or a column.
            set: SQL text or a column, by the name of the assigned column.

        Returns:
            The builder.

        Examples:
            >>> source = spark.createDataFrame([(1, 5.0)], "id long, more double")
            >>> total = {"score": "target.score + source.more"}
            >>> merge = table.merge(source, "target.id = source.id").whenMatchedUpdate(set=total)
            >>> merge.execute().first().num_updated_rows
            1
        """
        clause = UpdateSet(values=as_values(set or {}), condition=_condition(condition))
        self._matched.append(clause)
        return self

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Set all columns of matched rows that the source has.

        Args:
            condition: Condition on both sides, as SQL text or a column.

        Returns:
            The builder.

        Examples:
            >>> source = spark.createDataFrame([(1, 9.0)], "id long, score double")
            >>> merge = table.merge(source, "target.id = source.id")
            >>> merge.whenMatchedUpdateAll("source.score > 2").execute().first().num_updated_rows
            1
        """
        self._matched.append(UpdateAll(condition=_condition(condition)))
        return self

    def whenMatchedDelete(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Delete matched rows.

        Args:
            condition: Condition on both sides, as SQL text or a column.

        Returns:
            The builder.

        Examples:
            >>> merge = table.merge(spark.range(2), "target.id = source.id").whenMatchedDelete()
            >>> merge.execute().first().num_deleted_rows
            1
        """
        self._matched.append(DeleteRow(condition=_condition(condition)))
        return self

    def whenNotMatchedInsert(
        self, condition: Expression | None = None, values: Values | None = None
    ) -> LanceMergeBuilder:
        """Insert rows with these values; other columns are null.

        Args:
            condition: Condition on the source, as SQL text or a column.
            values: SQL text or a column, by the name of the column.

        Returns:
            The builder.

        Examples:
            >>> merge = table.merge(spark.range(4, 5), "target.id = source.id")
            >>> merge = merge.whenNotMatchedInsert(values={"id": "source.id", "score": "0.0"})
            >>> merge.execute().first().num_inserted_rows
            1
        """
        clause = InsertValues(values=as_values(values or {}), condition=_condition(condition))
        self._not_matched.append(clause)
        return self

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Insert source rows without a match.

        Args:
            condition: Condition on the source, as SQL text or a column.

        Returns:
            The builder.

        Examples:
            >>> source = spark.createDataFrame([(4, "di", 4.5)], table.toDF().schema)
            >>> merge = table.merge(source, "target.id = source.id").whenNotMatchedInsertAll()
            >>> merge.execute().first().num_inserted_rows
            1
        """
        self._not_matched.append(InsertAll(condition=_condition(condition)))
        return self

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> LanceMergeBuilder:
        """Set columns of rows not matched by the source.

        Args:
            condition: Condition on the table, as SQL text or a column.
            set: SQL text or a column, by the name of the assigned column.

        Returns:
            The builder.

        Examples:
            >>> merge = table.merge(spark.range(2), "target.id = source.id")
            >>> merge = merge.whenNotMatchedBySourceUpdate(set={"score": "0.0"})
            >>> merge.execute().first().num_updated_rows
            2
        """
        clause = UpdateSet(values=as_values(set or {}), condition=_condition(condition))
        self._not_matched_by_source.append(clause)
        return self

    def whenNotMatchedBySourceDelete(
        self, condition: Expression | None = None
    ) -> LanceMergeBuilder:
        """Delete rows not matched by the source.

        Args:
            condition: Condition on the table, as SQL text or a column.

        Returns:
            The builder.

        Examples:
            >>> merge = table.merge(spark.range(2), "target.id = source.id")
            >>> merge.whenNotMatchedBySourceDelete().execute().first().num_deleted_rows
            2
        """
        self._not_matched_by_source.append(DeleteRow(condition=_condition(condition)))
        return self

    def withSchemaEvolution(self) -> LanceMergeBuilder:
        """Add columns to the table that only the source has.

        Returns:
            The builder.

        Examples:
            >>> source = spark.createDataFrame([(1, "Oslo")], "id long, city string")
            >>> merge = table.merge(source, "target.id = source.id").withSchemaEvolution()
            >>> merged = merge.whenMatchedUpdateAll().execute()
            >>> table.toDF().columns
            ['id', 'name', 'score', 'city']
        """
        self._adds_columns = True
        return self

    def execute(self) -> DataFrame:
        """Merge and commit.

        Returns:
            One row with the counts.

        Raises:
            InvalidRequestError: Several source rows match one row of the table.
            SchemaMismatchError: The source does not fit the columns of the table.

        Examples:
            >>> merge = table.merge(spark.range(2), "target.id = source.id").whenMatchedDelete()
            >>> merge.execute().first().num_affected_rows
            1
        """
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


def _condition(condition: Expression | None) -> Column | None:
    return None if condition is None else as_column(condition)
