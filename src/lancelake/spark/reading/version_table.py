"""A table version in Spark's planner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import types as t

from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.tasks import SplitLimits
from lancelake.errors import InvalidRequestError
from lancelake.spark.jvm.catalyst import partition_bytes
from lancelake.spark.jvm.gateway import Gateway, cores
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_tasks import java_schema
from lancelake.spark.reading.scan import LanceScanBuilder
from lancelake.spark.tasks import columns as metadata_columns
from lancelake.spark.tasks.read_plan import ReadRequest
from lancelake.spark.values.options import (
    READ_OPTIONS,
    SCAN_OPTIONS,
    TableOptions,
    properties_of,
)
from lancelake.spark.values.spark_types import declared, shown_schema

_BY_SPARK = ("versionasof", "timestampasof")
"""Options by which Spark itself has selected the version when the table was loaded."""


def dict_of(options: Any) -> dict[str, str]:
    """Return options of the connector API."""
    return {} if options.isEmpty() else dict(options.asCaseSensitiveMap())


def default_limits(gateway: Gateway) -> SplitLimits:
    """Return the limits of partitions that the settings of the session give."""
    return SplitLimits(max_bytes=partition_bytes(gateway), cores=cores(gateway))


class ReadableTable(TableProxy):
    """A table with rows of one version, which are only read."""

    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, schema: t.StructType
    ) -> None:
        super().__init__(gateway)
        self.snapshot, self._name, self._schema = snapshot, name, schema

    def identity(self) -> str:
        at = self.snapshot
        version = f"{at.location.uri} version {at.version} branch {at.branch or 'main'}"
        return f"lance {self._rows()}{version}"

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def capabilities(self) -> Any:
        return self.gateway.once(
            "readable", lambda: self.gateway.enum_set("catalog.TableCapability", ["BATCH_READ"])
        )

    def _rows(self) -> str:
        """Return what tells its rows from those of the version."""
        return ""


@implements("catalog.SupportsRead", "catalog.SupportsMetadataColumns")
class VersionTable(ReadableTable):
    """Reads one pinned version."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str) -> None:
        super().__init__(gateway, snapshot, name, shown_schema(snapshot.manifest.schema))

    def facts(self) -> dict[str, object]:
        own = set(self._schema.fieldNames())
        return {
            **self.texts(),
            "canRenameConflictingMetadataColumns": False,
            "capabilities": ["BATCH_READ"],
            "constraints": [],
            "id": None,
            "metadataColumns": [
                [name, metadata_columns.comment(name)]
                for name in metadata_columns.NAMES
                if name not in own
            ],
            "name": self._name,
            "partitioning": [],
            "properties": properties_of(self.snapshot),
            "schema": declared(self._schema, self.snapshot.manifest.schema).json(),
            "version": str(self.snapshot.version),
        }

    def schema(self) -> Any:
        return java_schema(self.gateway, declared(self._schema, self.snapshot.manifest.schema))

    def newScanBuilder(self, options: Any) -> Any:
        return LanceScanBuilder(self.gateway, self._request(dict_of(options)))

    def _request(self, given: dict[str, str]) -> ReadRequest:
        rest = {key: text for key, text in given.items() if key.lower() not in _BY_SPARK}
        self._ensure_no_travel({key.lower() for key in rest})
        options = TableOptions.of(self.snapshot.location, rest, SCAN_OPTIONS)
        return ReadRequest.of(self.snapshot, self._schema, options, default_limits(self.gateway))

    def _ensure_no_travel(self, given: Collection[str]) -> None:
        """Refuse options that select a version: it was selected when the table was loaded."""
        refused = [name for name in READ_OPTIONS if name not in SCAN_OPTIONS and name in given]
        if refused:
            raise InvalidRequestError(
                f"option {refused[0]} cannot select a version of a table that is read by name",
                table=self.snapshot.location.uri,
                option=refused[0],
                action=(
                    "Use VERSION AS OF, TIMESTAMP AS OF, or the names of tags and branches, "
                    "such as t.branch_b."
                ),
            )
