"""Conditions on a change data feed: the columns they refer to, and the versions they exclude."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lancelake.expr.condition import Comparison, Condition, Operator
from lancelake.spark.jvm.spark_conditions import TypeOf
from lancelake.spark.reading.change_feed import FeedRequest, last_version
from lancelake.spark.reading.column_types import column_types
from lancelake.table.change_feed.request import CHANGE_TYPE, COMMIT_VERSION

_FEED_TYPES = {CHANGE_TYPE: pa.string(), COMMIT_VERSION: pa.int64()}


def feed_types(request: FeedRequest) -> TypeOf:
    """Return a type lookup for the columns of a feed by path."""
    last = last_version(request.snapshot, request.versions)
    own = column_types(last.manifest.schema)
    shown = set(request.schema.fieldNames())

    def type_of(path: tuple[str, ...]) -> pa.DataType | None:
        if path[0] not in shown:
            return None
        return _FEED_TYPES.get(path[0]) if len(path) == 1 and path[0] in _FEED_TYPES else own(path)

    return type_of


def narrowed(request: FeedRequest, condition: Condition) -> FeedRequest:
    """Exclude versions by a condition on the commit version."""
    if not isinstance(condition, Comparison) or condition.column.path != (COMMIT_VERSION,):
        return request
    value, first, last = condition.value.as_py(), request.first, request.last
    operator = condition.operator
    if operator in (Operator.GREATER, Operator.GREATER_EQUAL, Operator.EQUAL):
        low = value + 1 if operator is Operator.GREATER else value
        first = low if first is None else max(first, low)
    if operator in (Operator.LESS, Operator.LESS_EQUAL, Operator.EQUAL):
        high = value - 1 if operator is Operator.LESS else value
        last = high if last is None else min(last, high)
    return replace(request, first=first, last=last)
