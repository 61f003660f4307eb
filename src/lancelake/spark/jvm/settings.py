"""Parallelism of an application."""

from __future__ import annotations

from lancelake.spark.jvm.gateway import Gateway

_CORES: dict[str, int] = {}


def cores(gateway: Gateway) -> int:
    """Return the number of tasks that run in parallel; cached, since it rarely changes."""
    if gateway.application not in _CORES:
        _CORES[gateway.application] = max(1, gateway.spark.sparkContext.defaultParallelism)
    return _CORES[gateway.application]
