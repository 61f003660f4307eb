"""A table with its MemWAL in Spark's planner: `t.latest`, or the option `freshness`."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.condition_sql import condition_sql
from lancelake.memwal.initialize import details_of
from lancelake.memwal.view import Freshness
from lancelake.scan.split import SplitLimits
from lancelake.spark.bounded_text import declared
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.plan_calls import partition_bytes
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.jvm.settings import cores
from lancelake.spark.options.table_options import TableOptions, ensure_known, given_to
from lancelake.spark.planning.request_scan import RequestReads, RequestScanBuilder
from lancelake.spark.reading.column_types import column_types
from lancelake.spark.reading.latest_plan import (
    FRESHNESS,
    LATEST_OPTIONS,
    LatestRequest,
    latest_partitions,
)
from lancelake.spark.types import shown_schema


@implements("catalog.SupportsRead")
class LatestTable(TableProxy):
    """Reads the newest row of each key."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str) -> None:
        super().__init__(gateway)
        details_of(snapshot)
        self._snapshot, self._name = snapshot, name
        self._schema = shown_schema(snapshot.manifest.schema)

    def identity(self) -> str:
        at = self._snapshot
        branch = at.branch or "main"
        return f"lance latest rows of {at.location.uri} version {at.version} branch {branch}"

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, declared(self._schema, self._snapshot.manifest.schema))

    def capabilities(self) -> Any:
        return self.gateway.set([self.gateway.connector("catalog.TableCapability").BATCH_READ])

    def newScanBuilder(self, options: Any) -> Any:
        given = {} if options.isEmpty() else dict(options.asCaseSensitiveMap())
        location = self._snapshot.location
        rest = given_to(location, given)
        ensure_known(rest, LATEST_OPTIONS, location.uri)
        parsed = TableOptions(location=location, rest=rest)
        most = parsed.positive("maxPartitionBytes") or partition_bytes(self.gateway)
        request = LatestRequest(
            snapshot=self._snapshot,
            schema=self._schema,
            freshness=Freshness.named(parsed.get(FRESHNESS) or Freshness.DURABLE),
            batch_rows=parsed.positive("batchRows"),
            limits=SplitLimits(max_bytes=most, cores=cores(self.gateway)),
        )
        return RequestScanBuilder(self.gateway, request, _READS)


def describe(request: LatestRequest) -> str:
    """Describe the scan."""
    at = request.snapshot
    where = f"{at.location.uri} (version {at.version}, branch {at.branch or 'main'})"
    parts = [f"lance latest rows of {where}, {request.freshness.value}"]
    parts.append(f"columns [{', '.join(request.schema.fieldNames())}]")
    if request.filters:
        parts.append(f"filters [{', '.join(map(condition_sql, request.filters))}]")
    return ", ".join(parts)


_READS: RequestReads[LatestRequest] = RequestReads(
    types=lambda request: column_types(request.snapshot.manifest.schema),
    describe=describe,
    partitions=latest_partitions,
)
