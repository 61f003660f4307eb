"""Tables by their paths, for `format("lance")`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.errors import SchemaMismatchError, suggestion
from lancelake.spark.connector.request_tables import FeedTable, LatestTable
from lancelake.spark.connector.stream_table import StreamTable
from lancelake.spark.connector.writable_table import LanceWriteBuilder
from lancelake.spark.jvm.gateway import Gateway, is_classic, open_gateway
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_tasks import java_schema, python_schema
from lancelake.spark.jvm.session_tables import data_frame
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.streaming.sink import SINK_OPTIONS
from lancelake.spark.streaming.stream_source import LATEST, STREAM_ONLY, STREAM_OPTIONS
from lancelake.spark.tasks.change_feed import FEED, FEED_OPTIONS, versions_of
from lancelake.spark.tasks.latest_plan import FRESHNESS, LATEST_OPTIONS
from lancelake.spark.values.options import (
    READ_OPTIONS,
    SCAN_OPTIONS,
    TableOptions,
    add_zones,
    as_texts,
    ensure_known,
    parse,
)

_READS = ("BATCH_READ", "MICRO_BATCH_READ")
_BATCH_OPTIONS = (*READ_OPTIONS, *FEED_OPTIONS, FRESHNESS)


def table_by_path(
    gateway: Gateway, options: Mapping[str, str], schema: t.StructType | None = None
) -> TableProxy:
    """Return the table that options select; with a schema, one that may not exist."""
    table = PathTable(gateway, options, schema)
    if schema is None:
        table.readable  # noqa: B018  # a table that does not exist is reported here
    return table


@implements(
    "catalog.SupportsRead",
    "catalog.SupportsMetadataColumns",
    "catalog.SupportsWrite",
    "lancelake.Streamed",
)
class PathTable(TableProxy):
    """A table by its path and the options of its load, which those of a query do not change.

    Spark hands over its rows and their columns without asking whether there is a table.
    """

    def __init__(
        self, gateway: Gateway, options: Mapping[str, str], schema: t.StructType | None
    ) -> None:
        super().__init__(gateway)
        self._given, self._schema = dict(options), schema

    @functools.cached_property
    def readable(self) -> TableProxy:
        """The table that a batch reads."""
        given = add_zones(self.gateway.spark, self._given)
        if _is_for_streams(given):
            return self._stream(given)
        return readable_table(self.gateway, parse(given, _BATCH_OPTIONS))

    @functools.cached_property
    def _place(self) -> TableOptions:
        return parse(self._given, (*_BATCH_OPTIONS, *STREAM_OPTIONS, *SINK_OPTIONS))

    def identity(self) -> str:
        return (
            f"lance.`{self._place.location.uri}`"
            if self._schema is not None
            else self.readable.identity()
        )

    def name(self) -> str:
        return f"lance.`{self._place.location.uri}`"

    def schema(self) -> Any:
        if self._schema is not None:
            return java_schema(self.gateway, self._schema)
        return self.readable.schema()

    def facts(self) -> dict[str, object] | None:
        facts = None if self._schema is not None else self.readable.facts()
        return None if facts is None else {**facts, "capabilities": list(_READS)}

    def metadataColumns(self) -> Any:
        return self.gateway.array(self.gateway.connector("catalog.MetadataColumn"), [])

    def capabilities(self) -> Any:
        writes = self._place.get("mode") is None and self._schema is not None
        names = ["STREAMING_WRITE", "TRUNCATE"] if writes else []
        return self.gateway.enum_set("catalog.TableCapability", [*names, *_READS])

    def newScanBuilder(self, options: Any) -> Any:  # noqa: ARG002  # the load had them
        if self._schema is not None:
            self._ensure_columns(self._schema)
        rest = {name: text for name in _OF_SCANS if (text := self._place.get(name)) is not None}
        return self.readable.newScanBuilder(self.gateway.options(rest))  # type: ignore[attr-defined]

    def newWriteBuilder(self, info: Any) -> Any:
        return LanceWriteBuilder(self.gateway, self._place, info, None)

    def asStream(self, options: Any) -> Any:
        return self._stream({**self._given, **add_zones(self.gateway.spark, dict(options))})

    def _stream(self, given: Mapping[str, str]) -> StreamTable:
        return StreamTable(self.gateway, parse(given, STREAM_OPTIONS), self.name())

    def _ensure_columns(self, wanted: t.StructType) -> None:
        """Refuse columns that the table does not have, or has in other types."""
        own = {field.name: field for field in python_schema(self.readable.schema()).fields}
        for field in wanted.fields:
            if field.name not in own:
                raise SchemaMismatchError(
                    f"the table has no column {field.name}",
                    table=self._place.location.uri,
                    action=suggestion(field.name, own, "columns"),
                )
            if own[field.name].dataType != field.dataType:
                raise SchemaMismatchError(
                    f"column {field.name} is {own[field.name].dataType.simpleString()} in the "
                    f"table, not {field.dataType.simpleString()}",
                    table=self._place.location.uri,
                    action="Omit the schema, and cast the column.",
                )


def _is_for_streams(given: Mapping[str, str]) -> bool:
    """Whether only a stream has these options: batches of changes start at a number."""
    lowered = {key.lower(): value.strip().lower() for key, value in given.items()}
    if any(name.lower() in lowered for name in STREAM_ONLY):
        return True
    start = lowered.get("startingversion")
    has_start = start is not None or "startingtimestamp" in lowered
    return start == LATEST or (has_start and lowered.get(FEED.lower()) != "true")


_OF_SCANS = (*SCAN_OPTIONS, FRESHNESS)


def readable_table(gateway: Gateway, parsed: TableOptions) -> TableProxy:
    """Return the rows, the changes or the latest rows of a table, as options ask for them."""
    snapshot = parsed.open().snapshot
    place = f"lance.`{snapshot.location.uri}`"
    if parsed.get(FRESHNESS) is not None:
        ensure_known(parsed.rest, ("branch", *LATEST_OPTIONS), snapshot.location.uri)
        return LatestTable(gateway, snapshot, f"latest rows of {place}")
    if parsed.flag(FEED, default=False):
        return FeedTable(gateway, snapshot, versions_of(parsed), f"changes of {place}")
    ensure_known(parsed.rest, READ_OPTIONS)
    return VersionTable(gateway, snapshot, place)


def read(spark: SparkSession, uri: str, **options: str | int | bool) -> DataFrame:
    """Return the rows of a table; filters, columns and aggregates are pushed down.

    Args:
        spark: The session.
        uri: Path or URI of the table.
        **options: Those of `spark.read.format("lance")`: `version`, `tag`, `branch`, `timestamp`,
            options of the object store; `readChangeFeed` returns row-level changes; `freshness`,
            `flushed` or `durable`, includes rows of the MemWAL.

    Returns:
        The rows.

    Raises:
        TableNotFoundError: There is no table at `uri`.
        InvalidRequestError: An option is unknown.

    Examples:
        >>> from lancelake.spark import read
        >>> [row.name for row in read(spark, path, version=1).where("score > 2").collect()]
        ['bob', 'cy']
    """
    given = as_texts(options)
    if not is_classic(spark):
        return spark.read.format("lance").options(**add_zones(spark, given)).load(uri)
    return read_options(spark, {**given, "path": uri})


def read_options(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the table selected by options, as a DataFrame of a classic session."""
    gateway = open_gateway(spark)
    return data_frame(gateway, table_by_path(gateway, options))
