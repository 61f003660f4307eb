"""What the session says about how much a partition may read, and how many run at once."""

from __future__ import annotations

from lancelake.spark.jvm.gateway import Door

_CORES: dict[str, int] = {}


def partition_bytes(door: Door) -> int:
    """Return the setting `spark.sql.files.maxPartitionBytes`."""
    return int(door.session_state().conf().filesMaxPartitionBytes())


def cores(door: Door) -> int:
    """Return how many tasks run at once; asked once, since it seldom changes."""
    if door.application not in _CORES:
        _CORES[door.application] = max(1, door.spark.sparkContext.defaultParallelism)
    return _CORES[door.application]
