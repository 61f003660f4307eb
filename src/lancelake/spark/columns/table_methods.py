"""Column methods of `LanceTable`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError
from lancelake.spark.catalog.alter import without_columns
from lancelake.spark.columns.add_columns import add_function_columns, add_spark_columns
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.maintenance.table_access import TableAccess
from lancelake.spark.options.expressions import as_column
from lancelake.spark.types import arrow_schema, arrow_type
from lancelake.table.columns.alter import ColumnChange, alter_columns
from lancelake.table.columns.grow import add_null_members

NewColumns = Mapping[str, str | Column] | t.StructType | str | Callable[[pa.RecordBatch], Any]


class TableColumns(TableAccess):
    """Methods that add, drop and change the columns of a table."""

    def addColumns(
        self,
        columns: NewColumns,
        *,
        types: Mapping[str, pa.DataType] | None = None,
        checkpoint: str | None = None,
        outputSchema: pa.Schema | None = None,
    ) -> None:
        """Add columns computed on the executors, or null columns from a schema.

        No row is rewritten.

        Args:
            columns: Spark expressions by name, as columns or SQL text, including pandas and Arrow
                UDFs; a function that receives Arrow batches of the table; or a schema of null
                columns.
            types: Arrow types to store expressions as, such as fixed-size lists.
            checkpoint: Path of a file that lets a later run skip fragments that this one has
                written.
            outputSchema: Arrow schema of what a function returns.

        Raises:
            InvalidRequestError: No column is named, or `outputSchema` is missing.
            FunctionError: A function failed; nothing was committed.

        Examples:
            >>> table.addColumns({"double": "score * 2"})
            >>> table.toDF().where("id = 1").first().double
            3.0
        """
        spark, base = self._spark, self.snapshot()
        if isinstance(columns, str | t.StructType):
            schema = _parsed(columns) if isinstance(columns, str) else columns
            add_null_members(base, arrow_schema(schema), engine=SparkEngine(spark))
        elif not isinstance(columns, Mapping):
            if outputSchema is None:
                raise InvalidRequestError("outputSchema is required for a function")
            add_function_columns(spark, base, columns, outputSchema)
        elif not columns:
            raise InvalidRequestError(
                "no columns were specified", action="Name at least one column."
            )
        else:
            kept = None if checkpoint is None else Path(checkpoint)
            values = {name: as_column(value) for name, value in columns.items()}
            add_spark_columns(spark, base, values, types=types, checkpoint=kept)

    def dropColumns(self, *columns: str) -> None:
        """Drop columns.

        Args:
            *columns: Names, or paths of struct fields.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.dropColumns("score")
            >>> table.toDF().columns
            ['id', 'name']
        """
        without_columns(self.snapshot(), columns)

    def renameColumn(self, existing: str, new: str) -> None:
        """Rename a column.

        Args:
            existing: The column, or the path of a struct field.
            new: The new name.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.renameColumn("score", "points")
            >>> table.toDF().columns
            ['id', 'name', 'points']
        """
        self._alter(ColumnChange(path=existing, name=new))

    def alterColumn(
        self,
        column: str,
        *,
        dataType: t.DataType | str | None = None,
        nullable: bool | None = None,
    ) -> None:
        """Change the type or the nullability of a column.

        Args:
            column: The column, or the path of a struct field.
            dataType: The new type, as a Spark type or text.
            nullable: Whether the column may have nulls.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.alterColumn("score", dataType="float")
            >>> dict(table.toDF().dtypes)["score"]
            'float'
        """
        named = _parsed(f"x {dataType}")["x"].dataType if isinstance(dataType, str) else dataType
        wanted: pa.DataType | None = None if named is None else arrow_type(named)
        self._alter(ColumnChange(path=column, nullable=nullable, data_type=wanted))

    def _alter(self, change: ColumnChange) -> None:
        alter_columns(self.snapshot(), [change], engine=SparkEngine(self._spark))


def _parsed(columns: str) -> t.StructType:
    found = t.StructType.fromDDL(columns)
    if not isinstance(found, t.StructType):
        raise InvalidRequestError(f"{columns!r} is not a list of columns with types")
    return found
