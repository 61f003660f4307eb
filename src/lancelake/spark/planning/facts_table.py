"""Metadata tables in Spark: few rows, read once on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import (
    Proxy,
    ScanBuilderProxy,
    ScanProxy,
    TableProxy,
    implements,
)
from lancelake.spark.jvm.python_read import (
    input_partitions,
    java_schema,
    python_schema,
    reader_factory,
)
from lancelake.spark.reading.partition import encode, read
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.types import arrow_schema, spark_field
from lancelake.table.describe.metadata_tables import facts, facts_schema


@dataclass(frozen=True, slots=True)
class FactsPartition:
    """Rows that are part of the partition."""

    rows: pa.Table
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the Arrow types that Spark expects."""
        conform = SparkConformer(self.schema)
        yield from (conform(batch) for batch in self.rows.combine_chunks().to_batches())


@implements("catalog.SupportsRead")
class FactsTable(TableProxy):
    """A metadata table of one version."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, facts: str, name: str) -> None:
        super().__init__(gateway)
        self._snapshot, self._facts, self._name = snapshot, facts, name
        self._schema = t.StructType([spark_field(f) for f in facts_schema(facts)])

    def identity(self) -> str:
        at = self._snapshot
        branch = at.branch or "main"
        return f"lance {self._facts} of {at.location.uri} version {at.version} branch {branch}"

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def capabilities(self) -> Any:
        return self.gateway.set([self.gateway.connector("catalog.TableCapability").BATCH_READ])

    def newScanBuilder(self, options: Any) -> Any:  # noqa: ARG002
        return _Builder(self.gateway, self._snapshot, self._facts, self._schema)


@implements("read.SupportsPushDownRequiredColumns")
class _Builder(ScanBuilderProxy):
    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, schema: t.StructType
    ) -> None:
        super().__init__(gateway)
        self._snapshot, self._facts, self._schema = snapshot, name, schema

    def pruneColumns(self, required: Any) -> None:
        self._schema = python_schema(required)

    def build(self) -> Any:
        return _Scan(self.gateway, self._snapshot, self._facts, self._schema)


@implements("read.Scan")
class _Scan(ScanProxy):
    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, schema: t.StructType
    ) -> None:
        super().__init__(gateway)
        self._snapshot, self._facts, self._schema = snapshot, name, schema

    def identity(self) -> str:
        at = self._snapshot
        columns = ", ".join(self._schema.fieldNames())
        return f"lance {self._facts} of {at.location.uri} (version {at.version}) [{columns}]"

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def toBatch(self) -> Any:
        rows = facts(self._facts, self._snapshot)
        return _Batch(self.gateway, rows, self._schema)


@implements("read.Batch")
class _Batch(Proxy):
    def __init__(self, gateway: Gateway, rows: pa.Table, schema: t.StructType) -> None:
        super().__init__(gateway)
        self._rows, self._schema = rows, schema

    def planInputPartitions(self) -> Any:
        # An Arrow table without columns does not keep its number of rows.
        rows = self._rows.select(self._schema.fieldNames() or self._rows.column_names[:1])
        part = FactsPartition(rows, arrow_schema(self._schema))
        return input_partitions(self.gateway, [encode(part)])

    def createReaderFactory(self) -> Any:
        return reader_factory(self.gateway, read, self._schema)
