"""A table version in Spark's planner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.scan.split import SplitLimits
from lancelake.spark.bounded_text import declared
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.plan_calls import partition_bytes
from lancelake.spark.jvm.proxy import Proxy, TableProxy, implements
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.jvm.settings import cores
from lancelake.spark.options.table_options import (
    READ_OPTIONS,
    SCAN_OPTIONS,
    USE_INDEX,
    TableOptions,
    ensure_known,
    given_to,
)
from lancelake.spark.options.table_properties import shown_properties
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.read_plan import ReadRequest
from lancelake.spark.reading.scan_builder import LanceScanBuilder
from lancelake.spark.types import shown_schema

_BY_SPARK = ("versionasof", "timestampasof")
"""Options by which Spark itself has selected the version when the table was loaded."""


@implements("catalog.MetadataColumn")
class _MetadataColumn(Proxy):
    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__(gateway)
        self._name = name

    def name(self) -> str:
        return self._name

    def dataType(self) -> Any:
        return self.gateway.member("org.apache.spark.sql.types.DataTypes", "LongType")

    def isNullable(self) -> bool:
        return False

    def comment(self) -> str:
        return metadata_columns.comment(self._name)

    def transform(self) -> Any:
        return None

    def metadataInJSON(self) -> Any:
        return None


@implements("catalog.SupportsRead", "catalog.SupportsMetadataColumns")
class VersionTable(TableProxy):
    """Reads one pinned version."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str) -> None:
        super().__init__(gateway)
        self.snapshot = snapshot
        self._name = name
        self._schema = shown_schema(snapshot.manifest.schema)
        self._metadata: Any = None

    def identity(self) -> str:
        at = self.snapshot
        return f"lance {at.location.uri} version {at.version} branch {at.branch or 'main'}"

    def name(self) -> str:
        return self._name

    def version(self) -> str:
        return str(self.snapshot.version)

    def schema(self) -> Any:
        return java_schema(self.gateway, declared(self._schema, self.snapshot.manifest.schema))

    def properties(self) -> Any:
        return self.gateway.map(shown_properties(self.snapshot))

    def capabilities(self) -> Any:
        return self.gateway.once("readable", self._readable)

    def _readable(self) -> Any:
        return self.gateway.set([self.gateway.connector("catalog.TableCapability").BATCH_READ])

    def metadataColumns(self) -> Any:
        if self._metadata is None:
            own = set(self._schema.fieldNames())
            names = [name for name in metadata_columns.NAMES if name not in own]
            columns = [_MetadataColumn(self.gateway, name) for name in names]
            kind = self.gateway.connector("catalog.MetadataColumn")
            self._metadata = self.gateway.array(kind, columns)
        return self._metadata

    def newScanBuilder(self, options: Any) -> Any:
        given = {} if options.isEmpty() else dict(options.asCaseSensitiveMap())
        return LanceScanBuilder(self.gateway, self._request(given))

    def _request(self, given: dict[str, str]) -> ReadRequest:
        rest = given_to(self.snapshot.location, given)
        for name in _BY_SPARK:
            rest.pop(name, None)
        self._ensure_no_travel(rest)
        ensure_known(rest, SCAN_OPTIONS, self.snapshot.location.uri)
        options = TableOptions(location=self.snapshot.location, rest=rest)
        return ReadRequest(
            snapshot=self.snapshot,
            schema=self._schema,
            batch_rows=options.positive("batchRows"),
            use_scalar_index=options.flag(USE_INDEX, default=True),
            limits=self._limits(options),
        )

    def _ensure_no_travel(self, given: Collection[str]) -> None:
        """Refuse options that select a version: it was selected when the table was loaded."""
        found = [name for name in READ_OPTIONS if name not in SCAN_OPTIONS and name in given]
        if found:
            raise InvalidRequestError(
                f"option {found[0]} cannot select a version of a table that is read by name",
                table=self.snapshot.location.uri,
                option=found[0],
                action=(
                    "Use VERSION AS OF, TIMESTAMP AS OF, or the names of tags and branches, "
                    "such as t.branch_b."
                ),
            )

    def _limits(self, options: TableOptions) -> SplitLimits:
        most = options.positive("maxPartitionBytes") or partition_bytes(self.gateway)
        return SplitLimits(max_bytes=most, cores=cores(self.gateway))
