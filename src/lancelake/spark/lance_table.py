"""`LanceTable`: programmatic access to a table, modelled on Delta's `DeltaTable`."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import has_table
from lancelake.errors import InvalidRequestError
from lancelake.spark.columns.table_methods import TableColumns
from lancelake.spark.maintenance.index_methods import TableIndexes
from lancelake.spark.maintenance.ref_methods import TableRefs
from lancelake.spark.maintenance.table_methods import TableMaintenance
from lancelake.spark.maintenance.wal_methods import TableWalMethods
from lancelake.spark.merge.builder import (
    LanceMergeBuilder,
    Values,
    as_values,
)
from lancelake.spark.merge.execute import execute_change
from lancelake.spark.merge.explicit import Change
from lancelake.spark.options.expressions import Expression, as_column
from lancelake.spark.options.table_options import (
    WRITE_OPTIONS,
    TableOptions,
    open_version,
    parse,
)
from lancelake.spark.options.times import zoned
from lancelake.spark.planning.frames import read_options
from lancelake.spark.search.table_methods import TableSearch
from lancelake.spark.writing.fitted_rows import ensure_new_names
from lancelake.spark.writing.write_plan import SaveMode, plan_write, write_planned
from lancelake.table import clone as cloning
from lancelake.table.merge.clauses import DeleteRow, UpdateSet
from lancelake.table.merge.run import Merged

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
        self._spark = spark
        self._options = options
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
        given = {key: str(value) for key, value in options.items()}
        table = cls(sparkSession, parse({**given, "path": path}, ("branch",)))
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
        from lancelake.spark.catalog.table_names import table_named  # noqa: PLC0415  # classic sessions only

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
        given = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in options.items()
        }
        parsed = parse({**given, "path": path}, WRITE_OPTIONS)
        mode = SaveMode.IGNORE if ifNotExists else SaveMode.ERROR
        empty = sparkSession.createDataFrame([], schema)
        ensure_new_names(empty)
        write_planned(empty, plan_write(parsed, empty.schema, mode))
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
        return has_table(parse({"path": identifier}, ()).location)

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
        return LanceTable(self._spark, self._options, aliasName)

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
        return self._options.location.uri

    def snapshot(self) -> Snapshot:
        """Open the newest version.

        Returns:
            The version with its manifest.

        Examples:
            >>> table.snapshot().version
            1
        """
        return open_version(self._options)

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
        given = dict(self._options.location.options) | dict(self._options.rest)
        given |= {key: str(value) for key, value in options.items()}
        frame = read_options(self._spark, {**given, "path": self.uri})
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
        given = {**self._bound("starting", first), "netChanges": str(net).lower()}
        given |= {} if end is None else self._bound("ending", end)
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
        return self._counted("num_affected_rows", counts.deleted)

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
        return self._counted("num_affected_rows", counts.updated)

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
        place = self._options.location.beside(target)
        copy = cloning.shallow_clone if isShallow else cloning.deep_clone
        copy(self.snapshot(), place)
        return LanceTable(self._spark, TableOptions(location=place, rest={}))

    def _change(self, condition: Expression | None, clause: Change) -> Merged:
        return execute_change(
            self._spark,
            self.snapshot(),
            None if condition is None else as_column(condition),
            clause,
            target_name=self.name_in_expressions,
        )

    def _bound(self, which: str, point: int | datetime) -> dict[str, str]:
        if isinstance(point, datetime):
            return {f"{which}Timestamp": zoned(self._spark, point)}
        return {f"{which}Version": str(point)}

    def _counted(self, name: str, count: int) -> DataFrame:
        return self._spark.createDataFrame([(count,)], f"{name} long")
