"""Atomic CREATE and REPLACE TABLE, with or without AS SELECT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_read import java_schema, python_schema
from lancelake.spark.options.table_options import (
    WRITE_OPTIONS,
    TableOptions,
    ensure_known,
    given_to,
)
from lancelake.spark.options.table_properties import config_of, creation_options
from lancelake.spark.planning.write import LanceWriteBuilder
from lancelake.spark.writing.write_plan import SaveMode, plan_write
from lancelake.storage.location import Location
from lancelake.table.planned_write import WritePlan, commit_write

_PROVIDER = "lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """Definition of a table in CREATE TABLE."""

    location: Location
    schema: t.StructType
    properties: dict[str, str]
    options: dict[str, str]
    chosen_location: str | None

    @staticmethod
    def of(gateway: Gateway, location: Location, details: tuple[Any, ...]) -> TableDefinition:
        """Parse a definition, which newer Spark versions pass as one object."""
        if len(details) == 1:
            info = details[0]
            columns, transforms, given = info.columns(), info.partitions(), info.properties()
        else:
            columns, transforms, given = details
        if len(transforms):
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit PARTITIONED BY.")
        if "StructType" not in columns.getClass().getName():
            columns = gateway.connector("catalog.CatalogV2Util").v2ColumnsToStructType(columns)
        _ensure_ours(given.get("provider"), location)
        schema = python_schema(columns)
        if not schema.fields:
            raise InvalidRequestError("a table needs at least one column", table=location.uri)
        every = dict(given)
        return TableDefinition(
            location=location,
            schema=schema,
            properties=config_of(every),
            options=given_to(location, creation_options(every)),
            chosen_location=every.get("location"),
        )

    def planned(self, options: TableOptions, mode: SaveMode) -> WritePlan:
        """Return the write that creates the table; its options override the table's."""
        ensure_known(self.options, WRITE_OPTIONS)
        options = replace(options, rest={**self.options, **options.rest})
        if options.get("replaceWhere") is not None:
            problem = "option replaceWhere cannot be used in a statement that creates a table"
            raise InvalidRequestError(problem, table=self.location.uri, option="replaceWhere")
        if mode is SaveMode.OVERWRITE:
            options = replace(options, rest={**options.rest, "overwriteschema": "true"})
        found = plan_write(options, self.schema, mode)
        if found is None:
            raise UnsupportedError(f"mode {mode.value} does not create a table")
        return replace(found, config=FrozenMap(self.properties))

    def created(self, mode: SaveMode) -> Snapshot:
        """Create the table without rows."""
        plan = self.planned(TableOptions(location=self.location, rest={}), mode)
        return commit_write(plan, ())


def _ensure_ours(provider: str | None, location: Location) -> None:
    if provider is not None and provider.lower() != _PROVIDER:
        raise UnsupportedError(
            f"this catalog contains Lance tables, not tables of format {provider}",
            table=location.uri,
            action="Omit USING, or write USING lance.",
        )


@implements("catalog.StagedTable", "catalog.SupportsWrite")
class StagedTable(TableProxy):
    """A table that is not committed yet."""

    def __init__(
        self, gateway: Gateway, definition: TableDefinition, mode: SaveMode, name: str
    ) -> None:
        super().__init__(gateway)
        self._definition, self._mode, self._name = definition, mode, name
        self._written: tuple[WritePlan, tuple[Fragment, ...]] | None = None

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._definition.schema)

    def properties(self) -> Any:
        return self.gateway.map(self._definition.properties)

    def capabilities(self) -> Any:
        can = self.gateway.connector("catalog.TableCapability")
        return self.gateway.set([can.BATCH_WRITE, can.TRUNCATE])

    def newWriteBuilder(self, info: Any) -> Any:
        target = TableOptions(location=self._definition.location, rest={})
        return LanceWriteBuilder(
            self.gateway, target, info, None, begin=self._begin, commit=self._keep, mode=self._mode
        )

    def commitStagedChanges(self) -> None:
        if self._written is None:
            self._definition.created(self._mode)
            return
        plan, fragments = self._written
        commit_write(plan, fragments)

    def abortStagedChanges(self) -> None:
        """Do nothing: nothing was committed, and cleanup removes orphan files."""

    def reportDriverMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomTaskMetric"), [])

    def _begin(
        self,
        options: TableOptions,
        schema: t.StructType,  # noqa: ARG002
        mode: SaveMode,
        **_: Any,
    ) -> WritePlan:
        """Plan the table as defined; Spark passes rows of exactly that schema."""
        return self._definition.planned(options, mode)

    def _keep(self, plan: WritePlan, fragments: tuple[Fragment, ...]) -> None:
        self._written = (plan, fragments)
