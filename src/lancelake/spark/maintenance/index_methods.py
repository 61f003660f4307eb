"""Index methods of `LanceTable`."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import DataFrame

from lancelake.spark.maintenance import index_jobs
from lancelake.spark.maintenance.table_access import TableAccess
from lancelake.table.index.parameters import ScalarKind, TableIndexParameters, VectorKind
from lancelake.table.index.request import IndexRequest


class TableIndexes(TableAccess):
    """Methods that list, build, refresh and drop the indices of a table."""

    def indexes(self) -> DataFrame:
        """Return the segments of all indices, and how many rows each covers.

        Returns:
            One row per segment.

        Examples:
            >>> created = table.createIndex("id")
            >>> [row.name for row in table.indexes().collect()]
            ['id_idx']
        """
        return self._facts("indices")

    def createIndex(
        self,
        column: str,
        kind: ScalarKind | VectorKind | str = "BTREE",
        name: str | None = None,
        *,
        replace: bool = False,
        **parameters: Unpack[TableIndexParameters],
    ) -> DataFrame:
        """Build an index of a column, on executors if it is large.

        Args:
            column: The column, or the path of a struct field.
            kind: BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER, NGRAM, INVERTED, or a kind of
                vector index such as IVF_PQ.
            name: Name of the index; by default the column's, with `_idx`.
            replace: Replace an index of the same name; otherwise it is an error.
            **parameters: Parameters of the kind, such as `num_partitions`.

        Returns:
            One row: what the index covers.

        Raises:
            AlreadyExistsError: There is an index of this name, and `replace` is False.
            ColumnTypeError: The kind does not support the type of the column.

        Examples:
            >>> table.createIndex("name", "BITMAP").count()
            1
        """
        request = IndexRequest(
            column=column, kind=kind, name=name, replace=replace, parameters=parameters
        )
        done = index_jobs.index_table(self._spark, self.snapshot(), request)
        return self._answered([done], index_jobs.INDEXED)

    def refreshIndex(self, name: str | None = None, rebuild: bool = False) -> DataFrame:
        """Add rows that are not indexed yet to an index, or to all.

        Args:
            name: The index; by default all.
            rebuild: Build the index again.

        Returns:
            One row for each index that changed.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> created = table.createIndex("id")
            >>> table.refreshIndex().count()
            0
        """
        names = None if name is None else [name]
        done = index_jobs.refresh_table(self._spark, self.snapshot(), names, rebuild=rebuild)
        return self._answered(done, index_jobs.INDEXED)

    def dropIndex(self, name: str) -> None:
        """Drop an index.

        Args:
            name: The name of the index.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> created = table.createIndex("id")
            >>> table.dropIndex("id_idx")
            >>> table.indexes().count()
            0
        """
        index_jobs.drop_table_index(self.snapshot(), name)
