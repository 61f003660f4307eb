"""`LanceTable`: programmatic access to a table, modelled on Delta's `DeltaTable`."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.values.writes import DeleteRow, RowsChanged, UpdateSet
from lancelake.errors import InvalidRequestError
from lancelake.spark.api.columns import TableColumns
from lancelake.spark.api.merge_builder import (
    LanceMergeBuilder,
    Values,
    as_values,
)
from lancelake.spark.connector.path_table import read_options
from lancelake.spark.connector.row_commands import execute_change
from lancelake.spark.jobs.fitted_rows import ensure_new_names
from lancelake.spark.jobs.row_maker import Change
from lancelake.spark.jobs.write_plan import SaveMode, plan_write, write_planned
from lancelake.spark.sql.index_methods import TableIndexes
from lancelake.spark.sql.maintenance_methods import TableMaintenance
from lancelake.spark.sql.procedures import SparkTable
from lancelake.spark.sql.ref_methods import TableRefs
from lancelake.spark.sql.search_methods import TableSearch
from lancelake.spark.sql.wal_methods import TableWalMethods
from lancelake.spark.values.options import (
    WRITE_OPTIONS,
    Expression,
    TableOptions,
    add_zone,
    as_column,
    as_texts,
    parse,
)

_TARGET = "target"


class LanceTable(
    TableColumns, TableRefs, TableIndexes, TableMaintenance, TableWalMethods, TableSearch
):
    """A table at a location; every call reads the newest version and commits a new one.

    Examples:
        >>> from lancelake.spark import LanceTable
        >>> table = LanceTable.forPath(spark, path)
        >>> table.toDF().where("score > 2").count()
        2
    """

    def __init__(
        self, spark: SparkSession, options: TableOptions, alias: str | None = None
    ) -> None:
        """Use `forPath`, `forName` or `create`."""
        self._table = SparkTable(spark, options)
        self._alias = alias

    def __repr__(self) -> str:
        return f"LanceTable({self.uri!r})"

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, **options: object) -> LanceTable:
        """Return the table at a path.

        Args:
            sparkSession: The session.
            path: Path or URI of the table.
            **options: Options of the object store, and `branch`.

        Returns:
            The table.

        Raises:
            TableNotFoundError: There is no table at `path`.

        Examples:
            >>> LanceTable.forPath(spark, path).version()
            1
        """
        table = cls(sparkSession, parse({**as_texts(options), "path": path}, ("branch",)))
        table.snapshot()
        return table

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> LanceTable:
        """Return a table of a registered catalog, or a branch of one.

        Args:
            sparkSession: The session.
            tableOrViewName: Name of the table, such as `lance.db.people`.

        Returns:
            The table.

        Raises:
            TableNotFoundError: The catalog has no such table.

        Examples:
            >>> made = spark.sql("CREATE TABLE IF NOT EXISTS lance.named (id BIGINT) USING lance")
            >>> LanceTable.forName(spark, "lance.named").version()
            1
        """
        from lancelake.spark.sql.table_names import table_named  # noqa: PLC0415  # classic sessions only

        table = cls(sparkSession, table_named(sparkSession, tableOrViewName))
        table.snapshot()
        return table

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession,
        path: str,
        schema: t.StructType | str,
        *,
        ifNotExists: bool = False,
        **options: object,
    ) -> LanceTable:
        """Create an empty table.

        Args:
            sparkSession: The session.
            path: Path or URI of the table.
            schema: A Spark schema, or columns with types as text.
            ifNotExists: Return the existing table, if there is one.
            **options: Options of a write.

        Returns:
            The table.

        Raises:
            AlreadyExistsError: The table exists, and `ifNotExists` is False.

        Examples:
            >>> new = LanceTable.create(spark, f"{folder}/empty.lance", "id long, name string")
            >>> new.toDF().columns
            ['id', 'name']
        """
        parsed = parse({**as_texts(options), "path": path}, WRITE_OPTIONS)
        mode = SaveMode.IGNORE if ifNotExists else SaveMode.ERROR
        empty = sparkSession.createDataFrame([], schema)
        ensure_new_names(empty)
        write_planned(empty, plan_write(parsed, empty.schema, mode, is_definition=True))
        return cls(sparkSession, TableOptions(location=parsed.location, rest={}))

    @staticmethod
    def isLanceTable(sparkSession: SparkSession, identifier: str) -> bool:  # noqa: ARG004
        """Whether there is a table at a path.

        Args:
            sparkSession: The session.
            identifier: Path or URI.

        Returns:
            True if there is a Lance table.

        Examples:
            >>> LanceTable.isLanceTable(spark, path), LanceTable.isLanceTable(spark, folder)
            (True, False)
        """
        return parse({"path": identifier}, ()).place.has_table()

    def alias(self, aliasName: str) -> LanceTable:
        """Return the table with an alias for merge expressions.

        Args:
            aliasName: The alias.

        Returns:
            The table with the alias.

        Examples:
            >>> table.alias("t").toDF().where("t.id = 2").count()
            1
        """
        return LanceTable(self._table.spark, self._table.options, aliasName)

    @property
    def name_in_expressions(self) -> str:
        """The name of the table in expressions: its alias, or `target`.

        Examples:
            >>> table.name_in_expressions
            'target'
        """
        return self._alias or _TARGET

    @property
    def uri(self) -> str:
        """Location of the table.

        Examples:
            >>> table.uri == path
            True
        """
        return self._table.options.location.uri

    def version(self) -> int:
        """Return the number of the newest version.

        Returns:
            The number.

        Examples:
            >>> table.version()
            1
        """
        return self.snapshot().version

    def toDF(self, **options: object) -> DataFrame:
        """Return the rows.

        Args:
            **options: Options of a read, such as `version`, `tag` or `timestamp`.

        Returns:
            The rows of the newest version, or of the selected one.

        Examples:
            >>> deleted = table.delete()
            >>> table.toDF().count(), table.toDF(version=1).count()
            (0, 3)
        """
        given = dict(self._table.options.location.options) | dict(self._table.options.rest)
        given |= as_texts(options)
        frame = read_options(self._table.spark, {**given, "path": self.uri})
        return frame if self._alias is None else frame.alias(self._alias)

    def changes(
        self, begin: int | datetime, end: int | datetime | None = None, *, net: bool = False
    ) -> DataFrame:
        """Return the row-level changes after version `begin`, up to and including `end`.

        The range is that of `LanceDataset.changes`. The table must have stable row ids.

        Args:
            begin: The version after which, or the time from which on changes are returned.
            end: The version or the time of the last change; by default the newest version.
            net: Return only the net difference between the first and the last version.

        Returns:
            The rows, with `_change_type`, `_commit_version`, `_commit_timestamp` and `_rowid`.

        Raises:
            UnsupportedError: The table has no stable row ids.

        Examples:
            >>> deleted = table.delete("id = 1")
            >>> [(row.id, row._change_type) for row in table.changes(1).collect()]
            [(1, 'delete')]
        """
        first = begin if isinstance(begin, datetime) else begin + 1
        given = {**self._point_option("starting", first), "netChanges": str(net).lower()}
        given |= {} if end is None else self._point_option("ending", end)
        return self.toDF(readChangeFeed="true", **given)

    def merge(self, source: DataFrame, condition: Expression) -> LanceMergeBuilder:
        """Start a merge of a DataFrame.

        Args:
            source: The rows to merge.
            condition: Which rows match; sides are named by their aliases, by default `target` and
                `source`.

        Returns:
            A builder: add clauses, then call `execute`.

        Examples:
            >>> source = spark.createDataFrame([(3, "cy", 9.0)], table.toDF().schema)
            >>> merge = table.merge(source, "target.id = source.id").whenMatchedUpdateAll()
            >>> merge.execute().first().num_updated_rows
            1
        """
        return LanceMergeBuilder(self, source, condition)

    def delete(self, condition: Expression | None = None) -> DataFrame:
        """Delete the rows that match a condition, or all.

        Args:
            condition: SQL text or a column.

        Returns:
            One row with the count.

        Examples:
            >>> table.delete("score < 2").first().num_affected_rows
            1
        """
        counts = self._change(condition, DeleteRow()).counts
        return self._show_count("num_affected_rows", counts.deleted)

    def update(
        self,
        condition: Expression | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> DataFrame:
        """Set columns of the rows that match a condition, or of all rows.

        Args:
            condition: SQL text or a column.
            set: SQL text or a column, by the name of the assigned column.

        Returns:
            One row with the count.

        Raises:
            InvalidRequestError: No column is set.

        Examples:
            >>> table.update("id = 1", {"score": "score + 1"}).first().num_affected_rows
            1
        """
        if not set:
            raise InvalidRequestError("No updates provided", action="Set at least one column.")
        counts = self._change(condition, UpdateSet(values=as_values(set))).counts
        return self._show_count("num_affected_rows", counts.updated)

    def clone(self, target: str, isShallow: bool = True) -> LanceTable:
        """Create a shallow or deep clone of the table.

        Args:
            target: Path or URI of the new table.
            isShallow: Refer to the files of this table instead of copying them.

        Returns:
            The new table.

        Raises:
            AlreadyExistsError: There is a table at `target`.

        Examples:
            >>> table.clone(f"{path}.copy").toDF().count()
            3
        """
        place = self._table.options.location.beside(target)
        refs = self._table.open().refs
        copy = refs.clone_shallow if isShallow else refs.clone_deep
        copy(place)
        return LanceTable(self._table.spark, TableOptions(location=place, rest={}))

    def _change(self, condition: Expression | None, clause: Change) -> RowsChanged:
        return execute_change(
            self._table.spark,
            self.snapshot(),
            None if condition is None else as_column(condition),
            clause,
            target_name=self.name_in_expressions,
        )

    def _point_option(self, which: str, point: int | datetime) -> dict[str, str]:
        if isinstance(point, datetime):
            return {f"{which}Timestamp": add_zone(self._table.spark, point)}
        return {f"{which}Version": str(point)}

    def _show_count(self, name: str, count: int) -> DataFrame:
        return self._table.spark.createDataFrame([(count,)], f"{name} long")
