"""Atomic CREATE and REPLACE TABLE, with or without AS SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as t

from lancelake.core.values.metadata import Fragment, FrozenMap, Location, Snapshot
from lancelake.core.values.reports import CLUSTER_BY, cluster_text
from lancelake.core.values.writes import WritePlan
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.spark.connector.writable_table import (
    LanceWriteBuilder,
    clustering_of,
    primary_key_of,
)
from lancelake.spark.jobs.write_plan import SaveMode, commit_plan, plan_write
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_tasks import java_schema, python_schema
from lancelake.spark.sql.alter_table import PrimaryKey, not_null, with_primary_key, with_vectors
from lancelake.spark.values.options import (
    WRITE_OPTIONS,
    TableOptions,
    config_of,
    creation_options,
)
from lancelake.spark.values.spark_types import spark_schema

_PROVIDER = "lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """Definition of a table in CREATE TABLE."""

    location: Location
    schema: t.StructType
    key: PrimaryKey | None
    properties: dict[str, str]
    options: Mapping[str, str]
    chosen_location: str | None
    after_commit: Callable[[], None] | None = None
    """Runs when the table exists: registers its name where that is not its location."""

    may_exist: bool = False
    """Whether a table at the location is the one that gets the name."""

    @staticmethod
    def of(gateway: Gateway, location: Location, details: tuple[Any, ...]) -> TableDefinition:
        """Parse a definition, which newer Spark versions pass as one object."""
        key: PrimaryKey | None = None
        if len(details) == 1:
            info = details[0]
            columns, transforms, given = info.columns(), info.partitions(), info.properties()
            key = primary_key_of(info.constraints())
        else:
            columns, transforms, given = details
        clustering = cluster_text(clustering_of(transforms))
        if "StructType" not in columns.getClass().getName():
            columns = gateway.connector("catalog.CatalogV2Util").v2ColumnsToStructType(columns)
        _ensure_ours(given.get("provider"), location)
        every = dict(given)
        schema = with_vectors(python_schema(columns), every)
        config = config_of(every) | ({} if clustering is None else {CLUSTER_BY: clustering})
        return TableDefinition(
            location=location,
            schema=schema if key is None else not_null(schema, key),
            key=key,
            properties=config,
            options=TableOptions.of(location, creation_options(every), WRITE_OPTIONS).rest,
            chosen_location=every.get("location"),
        )

    def plan(self, options: TableOptions, mode: SaveMode) -> WritePlan:
        """Return the write that creates the table; its options override the table's."""
        if not self.schema.fields:
            problem = "a table needs at least one column"
            raise InvalidRequestError(problem, table=self.location.uri)
        options = replace(options, rest={**self.options, **options.rest})
        if options.get("replaceWhere") is not None:
            problem = "option replaceWhere cannot be used in a statement that creates a table"
            raise InvalidRequestError(problem, table=self.location.uri, option="replaceWhere")
        if mode is SaveMode.OVERWRITE:
            options = replace(options, rest={**options.rest, "overwriteschema": "true"})
        plan = plan_write(options, self.schema, mode, is_definition=True)
        if plan is None:
            raise UnsupportedError(f"mode {mode.value} does not create a table")
        if self.key is not None:
            keyed = with_primary_key(plan.task.schema, self.key)
            plan = replace(plan, task=replace(plan.task, schema=keyed))
        return plan.adapt(config=FrozenMap(self.properties))

    def create(self, mode: SaveMode) -> Snapshot:
        """Create the table without rows; an external table may exist already."""
        options = TableOptions(location=self.location, rest={})
        table = options.open_existing() if mode is SaveMode.ERROR and self.may_exist else None
        if table is None:
            return self._write(self.plan(options, mode), (), "TABLE")
        self._ensure_same(table.snapshot)
        self._follow_commit()
        return table.snapshot

    def commit(self, plan: WritePlan, fragments: tuple[Fragment, ...]) -> Snapshot:
        """Commit the table with its rows."""
        return self._write(plan, fragments, "TABLE AS SELECT")

    def _write(self, plan: WritePlan, fragments: tuple[Fragment, ...], what: str) -> Snapshot:
        verb = "CREATE" if plan.base is None else "REPLACE"
        snapshot = commit_plan(plan.named(f"{verb} {what}"), fragments)
        self._follow_commit()
        return snapshot

    def _follow_commit(self) -> None:
        if self.after_commit is not None:
            self.after_commit()

    def _ensure_same(self, table: Snapshot) -> None:
        """Refuse columns that differ from those of an existing external table."""
        own = [(f.name, f.dataType) for f in spark_schema(table.manifest.schema).fields]
        wanted = [(f.name, f.dataType) for f in self.schema.fields]
        if wanted and wanted != own:
            raise SchemaMismatchError(
                "the columns differ from those of the table at this location",
                table=table.location.uri,
                version=table.version,
                action="Omit the columns.",
            )


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
        return self.gateway.enum_set("catalog.TableCapability", ["BATCH_WRITE", "TRUNCATE"])

    def newWriteBuilder(self, info: Any) -> Any:
        target = TableOptions(location=self._definition.location, rest={})
        return LanceWriteBuilder(
            self.gateway, target, info, None, begin=self._begin, commit=self._keep, mode=self._mode
        )

    def commitStagedChanges(self) -> None:
        if self._written is None:
            self._definition.create(self._mode)
            return
        self._definition.commit(*self._written)

    def abortStagedChanges(self) -> None:
        """Do nothing: nothing was committed, and cleanup removes orphan files."""

    def _begin(
        self,
        options: TableOptions,
        schema: t.StructType,  # noqa: ARG002
        mode: SaveMode,
        **_: Any,
    ) -> WritePlan:
        """Plan the table as defined; Spark passes rows of exactly that schema."""
        return self._definition.plan(options, mode)

    def _keep(self, plan: WritePlan, fragments: tuple[Fragment, ...]) -> None:
        self._written = (plan, fragments)
