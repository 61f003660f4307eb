"""Java objects for the planner: fewer messages between Python and Java."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from lancelake.expr.chains import MAX_DEPTH
from lancelake.spark.jvm.compiled import driver_object
from lancelake.spark.jvm.gateway import Gateway

_ANY_NUMBER = (1 << 31) - 1


def remembered(gateway: Gateway, proxy: Any) -> Any:
    """Return a Python object for Spark whose constant answers Java keeps."""
    made = gateway.once_per_jvm("memory of proxies", lambda: driver_object(gateway, "Remembered"))
    return made.of(proxy)


def partition_bytes(gateway: Gateway) -> int:
    """Return the setting `spark.sql.files.maxPartitionBytes` of the session."""
    return int(_calls(gateway).partitionBytes(gateway.spark._jsparkSession))


def partitions(gateway: Gateway, payloads: Sequence[bytes]) -> Any:
    """Return Spark's partitions, each with the bytes for the reader on the executor."""
    lengths = ",".join(str(len(payload)) for payload in payloads)
    return _calls(gateway).partitions(bytearray(b"".join(payloads)), lengths)


def metric_values(gateway: Gateway, values: Mapping[str, int]) -> Any:
    """Return values of metrics; names have no punctuation."""
    text = ",".join(f"{name}={value}" for name, value in values.items())
    return gateway.recent(f"metrics {text}", lambda: _calls(gateway).metrics(text))


def chosen(gateway: Gateway, predicates: Any, positions: Sequence[int]) -> Any:
    """Return the predicates of an array at some positions, as an array."""
    return _calls(gateway).chosen(predicates, ",".join(map(str, positions)))


def described(gateway: Gateway, predicates: Any, most: int | None = None) -> Any:
    """Return an array of predicates as tuples; those with more than `most` children as unknown.

    So are those that are nested deeper than conditions in text may be.
    """
    limit = _ANY_NUMBER if most is None else most
    told = _calls(gateway).described(predicates, limit, MAX_DEPTH)
    return pickle.loads(told)  # from our own JVM


def described_alone(gateway: Gateway, predicate: Any) -> Any:
    """Return a predicate as tuples, with the same limit of its depth."""
    told = _calls(gateway).describedAlone(predicate, MAX_DEPTH)
    return pickle.loads(told)  # from our own JVM


def _calls(gateway: Gateway) -> Any:
    return gateway.once_per_jvm("calls of the planner", lambda: driver_object(gateway, "PlanCalls"))
