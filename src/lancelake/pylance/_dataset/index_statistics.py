"""Coverage statistics of indices."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IndexNotFoundError
from lancelake.pylance._dataset.index_values import describe
from lancelake.scan.count import live_rows
from lancelake.suggest import suggestion

_MILLISECONDS = 1000


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the coverage of an index from the manifest; its files are not opened."""
    found = [i for i in describe(snapshot.indices, snapshot.manifest) if i.name == name]
    if not found:
        raise IndexNotFoundError(
            f"Index {name!r} not found",
            table=snapshot.location.uri,
            version=snapshot.version,
            action=suggestion(name, sorted({i.name for i in snapshot.indices}), "indices"),
        )
    (index,) = found
    source = snapshot
    places = source.files, source.manifest_at
    rows: dict[int, int] = {f.id: live_rows(*places, f) for f in snapshot.manifest.fragments}
    per_segment = [sum(rows.get(i, 0) for i in s.fragment_ids) for s in index.segments]
    covered = {i for segment in index.segments for i in segment.fragment_ids} & set(rows)
    indexed = sum(count for i, count in rows.items() if i in covered)
    times = [s.created_at.timestamp() for s in index.segments if s.created_at is not None]
    return {
        "index_type": index.index_type,
        "name": index.name,
        "num_indices": len(index.segments),
        "num_segments": len(index.segments),
        "num_indexed_fragments": len(covered),
        "num_indexed_rows": indexed,
        "num_indexed_rows_per_delta": per_segment,
        "num_unindexed_fragments": len(rows) - len(covered),
        "num_unindexed_rows": sum(rows.values()) - indexed,
        "updated_at_timestamp_ms": round(max(times) * _MILLISECONDS) if times else None,
    }
