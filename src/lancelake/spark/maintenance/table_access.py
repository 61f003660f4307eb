"""Base of the methods of `LanceTable`: its versions, and results as DataFrames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.spark.catalog.result_rows import ResultRow
from lancelake.spark.types import spark_field
from lancelake.table.describe.metadata_tables import facts
from lancelake.table.open import AtVersion, open_snapshot


class TableAccess(ABC):
    """Access to the versions of a table."""

    _spark: SparkSession

    @property
    @abstractmethod
    def uri(self) -> str:
        """Location of the table."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Open the newest version."""

    def _at(self, version: int | None) -> Snapshot:
        head = self.snapshot()
        if version is None:
            return head
        return open_snapshot(head.location, AtVersion(version), main=head.main_location)

    def _facts(self, name: str, limit: int | None = None) -> DataFrame:
        found = facts(name, self.snapshot(), limit)
        schema = t.StructType([spark_field(field) for field in found.schema])
        rows = [tuple(_plain(row, schema).values()) for row in found.to_pylist()]
        return self._spark.createDataFrame(rows, schema)

    def _answered(self, rows: Iterable[ResultRow], schema: t.StructType) -> DataFrame:
        names = schema.fieldNames()
        return self._spark.createDataFrame([tuple(row[n] for n in names) for row in rows], schema)


def _plain(row: ResultRow, schema: t.StructType) -> dict[str, object]:
    """Return a row with maps in a form that Spark accepts."""
    maps = {f.name for f in schema.fields if isinstance(f.dataType, t.MapType)}
    return {name: dict(value) if name in maps else value for name, value in row.items()}
