"""Coverage statistics of indices."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.table.index.statistics import coverage_named, segment_statistics

_NOT_KNOWN = "N/A"


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index, and those of its segments if its kind is known."""
    found = coverage_named(snapshot, name)
    segments = segment_statistics(snapshot, name)
    shown = {} if segments is None else {"indices": segments, "segments": segments}
    # Official releases take the kind from the statistics of the segments.
    is_empty = segments is not None and not any(segments)
    return {
        "index_type": _NOT_KNOWN if is_empty else found.kind,
        "name": found.name,
        "num_indices": found.segments,
        "num_segments": found.segments,
        **shown,
        "num_indexed_fragments": found.fragments,
        "num_indexed_rows": found.rows,
        "num_indexed_rows_per_delta": list(found.rows_per_segment),
        "num_unindexed_fragments": found.unindexed_fragments,
        "num_unindexed_rows": found.unindexed_rows,
        "updated_at_timestamp_ms": found.created_at_ms,
    }
