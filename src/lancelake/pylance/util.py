"""Helpers of pylance: times, durations, clusters and a check of vector indices."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lancelake.core.values.reads import partition_count
from lancelake.pylance._dataset.arguments import to_datetime
from lancelake.pylance._values.vector_models import KMeans

__all__ = ["KMeans", "sanitize_ts", "td_to_micros", "validate_vector_index"]

_NEAR = 1e-6


def sanitize_ts(ts: datetime | str) -> datetime:
    """Parse a datetime, a pandas timestamp or ISO 8601 text."""
    return to_datetime(ts)


def td_to_micros(td: timedelta) -> int:
    """Return a duration in microseconds."""
    return round(td / timedelta(microseconds=1))


def _target_partition_size_to_num_partitions(
    num_rows: int, target_partition_size: int | None
) -> int:
    """Return the number of partitions; the name is pylance's."""
    return partition_count(num_rows, target_partition_size)


def validate_vector_index(
    dataset: Any,
    column: str,
    refine_factor: int = 5,
    sample_size: int | None = None,
    pass_threshold: float = 1.0,
) -> None:
    """Search for stored vectors and raise if fewer than this share find a vector equal to them."""
    rows = dataset.to_table() if sample_size is None else dataset.sample(sample_size)
    vectors = rows[column].to_numpy(zero_copy_only=False)
    searched = [vector for vector in vectors if not np.isnan(vector).any()]
    total = 0
    for vector in searched:
        nearest = {
            "column": column,
            "q": vector,
            "k": 1,
            "nprobes": 1,
            "refine_factor": refine_factor,
        }
        distances = dataset.to_table(nearest=nearest)["_distance"].to_pylist()
        total += bool(distances) and abs(distances[0]) < _NEAR
    if total < pass_threshold * len(searched):
        raise ValueError(f"Vector index failed sanity check, only {total}/{len(searched)} passed")
