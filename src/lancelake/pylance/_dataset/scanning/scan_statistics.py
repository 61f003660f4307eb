"""Statistics of a scan, for a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from lancelake import events
from lancelake.pylance.log import LOGGER
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.prepared import PreparedScan
from lancelake.storage.io_account import IoAccount


@dataclass(frozen=True, kw_only=True)
class ScanStatistics:
    """Statistics of a scan, including the index search of its filter."""

    iops: int = 0
    requests: int = 0
    """Store calls, and reads that the codec was asked for."""
    bytes_read: int = 0
    """Stored bytes of the objects and pages read. Of pages of which only some rows were read,
    the codec may have read less; then `all_counts["bytes_read_is_limit"]` is 1."""
    indices_loaded: int = 0
    """Index segments of which files were read."""
    parts_loaded: int = 0
    """Reads of index files."""
    index_comparisons: int | None = 0
    """None if an index was searched: comparisons are not counted."""
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: dict[str, int] = field(default_factory=dict)
    all_times: dict[str, int] = field(default_factory=dict)
    """Nanoseconds of the steps."""


_INDICES = "/_indices/"

StatisticsCallback: TypeAlias = Callable[[ScanStatistics], None]


def statistics_of(plan: PreparedScan, measure: ScanMeasure) -> ScanStatistics:
    """Return the statistics of a finished scan."""
    planning, scan = measure.planning_io.account, measure.scan_io.account
    size = measure.planning_io.size + measure.scan_io.size
    requests = planning.requests + scan.requests
    counts = planning.counts + scan.counts
    parts = [place for account in (planning, scan) for place in _index_files(account)]
    is_searched = bool(parts or counts["index_cache_hits"] or counts["index_cache_misses"])
    return ScanStatistics(
        iops=requests,
        requests=requests,
        bytes_read=size.size_bytes,
        indices_loaded=len({uri.rpartition("/")[0] for uri in parts}),
        parts_loaded=len(parts),
        index_comparisons=None if is_searched else 0,
        index_cache_hits=counts["index_cache_hits"],
        index_cache_misses=counts["index_cache_misses"],
        all_counts={
            "fragments_scanned": plan.num_fragments,
            "rows_scanned": scan.rows_read,
            "output_rows": measure.output.rows,
            "output_batches": measure.output.batches,
            "store_requests": planning.store_requests + scan.store_requests,
            "bytes_read_is_limit": int(not size.is_exact),
            "partitions_searched": counts["partitions_searched"],
        },
        all_times={
            "planning": _ns(measure.planning.elapsed_s),
            "scan": _ns(measure.scan.elapsed_s),
            "output": _ns(measure.output.elapsed_s),
        },
    )


def report(plan: PreparedScan, measure: ScanMeasure, callback: StatisticsCallback) -> None:
    """Call the callback with the statistics of a finished scan; its errors are logged."""
    try:
        callback(statistics_of(plan, measure))
    except Exception:  # noqa: BLE001  # whatever the user's function raises
        LOGGER.exception("the callback for scan statistics failed")


def traced(callback: StatisticsCallback | None) -> StatisticsCallback | None:
    """Return a callback that reports the scan as an event too, if anyone listens."""
    if not events.are_heard():
        return callback

    def tell(found: ScanStatistics) -> None:
        events.emit(
            events.EXECUTION,
            type="plan_run",
            output_rows=found.all_counts["output_rows"],
            iops=found.iops,
            requests=found.requests,
            bytes_read=found.bytes_read,
            indices_loaded=found.indices_loaded,
            parts_loaded=found.parts_loaded,
            index_cache_hits=found.index_cache_hits,
            index_cache_misses=found.index_cache_misses,
        )
        if callback is not None:
            callback(found)

    return tell


def reported(
    rows: pa.RecordBatchReader,
    plan: PreparedScan,
    measure: ScanMeasure,
    callback: StatisticsCallback,
) -> pa.RecordBatchReader:
    """Stream the rows, and call the callback after the last one."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows
        report(plan, measure, callback)

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _index_files(account: IoAccount) -> list[str]:
    """Return the index file of each read of one."""
    places = [read.place.uri for read in account.reads]
    places += [read.place.uri for read in account.buffers]
    return [place for place in places if _INDICES in place]


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
