"""Statistics of a scan, for a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

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
    index_comparisons: int | None = None
    """Not counted."""
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: dict[str, int] = field(default_factory=dict)
    all_times: dict[str, int] = field(default_factory=dict)
    """Nanoseconds of the steps."""


StatisticsCallback: TypeAlias = Callable[[ScanStatistics], None]


def statistics_of(plan: PreparedScan, measure: ScanMeasure) -> ScanStatistics:
    """Return the statistics of a finished scan."""
    planning, scan = measure.planning_io.account, measure.scan_io.account
    size = measure.planning_io.size + measure.scan_io.size
    requests = planning.requests + scan.requests
    return ScanStatistics(
        iops=requests,
        requests=requests,
        bytes_read=size.size_bytes,
        indices_loaded=len(_folders(planning)),
        parts_loaded=len(planning.reads) + len(planning.buffers),
        index_cache_hits=planning.counts["index_cache_hits"],
        index_cache_misses=planning.counts["index_cache_misses"],
        all_counts={
            "fragments_scanned": plan.num_fragments,
            "rows_scanned": scan.rows_read,
            "output_rows": measure.output.rows,
            "output_batches": measure.output.batches,
            "store_requests": planning.store_requests + scan.store_requests,
            "bytes_read_is_limit": int(not size.is_exact),
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


def _folders(account: IoAccount) -> set[str]:
    places = [read.place for read in account.reads] + [read.place for read in account.buffers]
    return {place.uri.rpartition("/")[0] for place in places}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
