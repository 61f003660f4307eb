"""Queries of DataFusion over streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lancelake.expr.evaluate import datafusion_threads
from lancelake.threads import streamed

if TYPE_CHECKING:
    from datafusion import SessionContext

_MEMORY_BYTES = 256 << 20
# Reserved for merging spilled rows.
_MERGE_BYTES = 64 << 20


def stream_query(
    query: str,
    row_schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    *,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the result of a query over the table `rows`, in types that DataFusion prefers.

    Rows that a sort cannot keep in memory are spilled to disk.
    """
    yield from streamed(lambda: _results(query, row_schema, batches, batch_rows))


def _results(
    query: str, row_schema: pa.Schema, batches: Iterator[pa.RecordBatch], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    from lancelake.expr.stream_dataset import StreamDataset  # noqa: PLC0415  # loads pandas, too

    datafusion_threads.ensure_alive()
    rows = StreamDataset(row_schema, batches)
    context = _context(batch_rows)
    context.register_dataset("rows", rows)
    try:
        for part in context.sql(query).execute_stream():
            yield part.to_pyarrow()
    except Exception:
        # DataFusion reports errors of its input as text.
        if rows.failure is not None:
            raise rows.failure from None
        raise


def _context(batch_rows: int) -> SessionContext:
    from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext  # noqa: PLC0415  # loads pandas, too

    runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(_MEMORY_BYTES)
    config = SessionConfig().with_target_partitions(1).with_batch_size(batch_rows)
    config = config.set("datafusion.execution.sort_spill_reservation_bytes", str(_MERGE_BYTES))
    return SessionContext(config, runtime)
