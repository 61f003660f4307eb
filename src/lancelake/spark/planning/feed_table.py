"""Change data feed in Spark: as a table, or as a changelog on newer Spark versions."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.condition_sql import condition_sql
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, TableProxy, implements
from lancelake.spark.jvm.python_read import java_schema, v2_columns
from lancelake.spark.jvm.settings import cores
from lancelake.spark.options.table_options import TableOptions, ensure_known, given_to
from lancelake.spark.options.times import with_zones
from lancelake.spark.planning.request_scan import RequestReads, RequestScanBuilder
from lancelake.spark.reading.change_feed import (
    FEED_OPTIONS,
    FeedRequest,
    Versions,
    feed_partitions,
)
from lancelake.spark.reading.feed_conditions import feed_types, narrowed
from lancelake.table.change_feed.request import COMMIT_VERSION


class _Feed(Proxy):
    """Common parts of tables and changelogs of a feed."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, versions: Versions, name: str) -> None:
        super().__init__(gateway)
        self._request = FeedRequest.of(snapshot, versions, cores(gateway))
        self._name = name

    def identity(self) -> str:
        return describe(self._request)

    def name(self) -> str:
        return self._name

    def newScanBuilder(self, options: Any) -> Any:
        given = {} if options.isEmpty() else dict(options.asCaseSensitiveMap())
        location = self._request.snapshot.location
        rest = given_to(location, given)
        ensure_known(rest, FEED_OPTIONS)
        zoned = with_zones(self.gateway.spark, rest)
        request = self._request.over(TableOptions(location=location, rest=zoned))
        return RequestScanBuilder(self.gateway, request, _READS)


@implements("catalog.SupportsRead")
class FeedTable(_Feed, TableProxy):
    """The changes up to a version; options of a query set their range."""

    def schema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

    def capabilities(self) -> Any:
        return self.gateway.set([self.gateway.connector("catalog.TableCapability").BATCH_READ])


@implements("catalog.Changelog")
class LanceChangelog(_Feed):
    """The changes of `CHANGES FROM VERSION ...`."""

    def columns(self) -> Any:
        return v2_columns(self.gateway, java_schema(self.gateway, self._request.schema))

    def containsCarryoverRows(self) -> bool:
        return False

    def containsIntermediateChanges(self) -> bool:
        return not self._request.versions.is_net

    def representsUpdateAsDeleteAndInsert(self) -> bool:
        return False

    def rowId(self) -> Any:
        make = self.gateway.connector("expressions.FieldReference")
        kind = self.gateway.connector("expressions.NamedReference")
        return self.gateway.array(kind, [make.column("_rowid")])

    def rowVersion(self) -> Any:
        return self.gateway.connector("expressions.FieldReference").column(COMMIT_VERSION)


def describe(request: FeedRequest) -> str:
    """Describe the feed and its range."""
    at, versions = request.snapshot, request.versions
    where = f"{at.location.uri} (version {at.version}, branch {at.branch or 'main'})"
    parts = [f"lance changes of {where}"]
    parts.append(f"after {versions.begin} up to {versions.end}")
    parts.append(f"columns [{', '.join(request.schema.fieldNames())}]")
    if request.filters:
        parts.append(f"filters [{', '.join(map(condition_sql, request.filters))}]")
    if versions.is_net:
        parts.append("net")
    return ", ".join(parts)


_READS: RequestReads[FeedRequest] = RequestReads(
    types=feed_types, describe=describe, partitions=feed_partitions, narrowed=narrowed
)
