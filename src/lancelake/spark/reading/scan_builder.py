"""Pushdown of filters, aggregates, limits and columns into a scan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lancelake.expr.condition import all_of
from lancelake.scan.prune import fragment_test
from lancelake.scan.reduce.aggregate import Kind
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.plan_calls import chosen
from lancelake.spark.jvm.proxy import ScanBuilderProxy, implements
from lancelake.spark.jvm.python_read import python_schema
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.column_types import column_types
from lancelake.spark.reading.pushdown import (
    aggregation_of,
    averages_longs,
    top_of,
)
from lancelake.spark.reading.read_plan import ReadRequest
from lancelake.spark.reading.scan import LanceScan, LocalCount


@implements(
    "read.SupportsPushDownRequiredColumns",
    "read.SupportsPushDownV2Filters",
    "read.SupportsPushDownLimit",
    "read.SupportsPushDownTopN",
    "read.SupportsPushDownAggregates",
)
class LanceScanBuilder(ScanBuilderProxy):
    """Collects the operations pushed into one scan."""

    def __init__(self, gateway: Gateway, request: ReadRequest) -> None:
        super().__init__(gateway)
        self._request = request
        types = column_types(request.snapshot.manifest.schema)
        self._expressions = JavaExpressions(gateway, types)
        self._pushed: Any = None
        self._averages_longs = False

    def pruneColumns(self, required: Any) -> None:
        if self._request.aggregation is None:
            self._request = replace(self._request, schema=python_schema(required))

    def pushPredicates(self, predicates: Any) -> Any:
        found = self._expressions.conditions(predicates)
        taken = [position for position, known in enumerate(found) if known is not None]
        left = [position for position, known in enumerate(found) if known is None]
        self._pushed = self._of(predicates, taken, len(found))
        rest = self._of(predicates, left, len(found))
        if left:
            self._choose_fragments(rest)
        filters = tuple(known for known in found if known is not None)
        self._request = replace(self._request, filters=filters)
        return rest

    def _choose_fragments(self, predicates: Any) -> None:
        """Select fragments by conditions on their id, which Spark still evaluates."""
        snapshot = self._request.snapshot
        expressions = JavaExpressions(self.gateway, metadata_columns.fragment_type(snapshot))
        found = expressions.conditions(predicates)
        known = all_of([condition for condition in found if condition is not None])
        may_hold = fragment_test(known, {(metadata_columns.FRAGMENT_ID,): 0})
        if may_hold is not None:
            # Fragments are decoded only for a condition on them.
            every = (fragment.id for fragment in snapshot.manifest.fragments)
            chosen = self._request.fragment_ids
            ids = tuple(i for i in (every if chosen is None else chosen) if may_hold(i))
            self._request = replace(self._request, fragment_ids=ids)

    def pushedPredicates(self) -> Any:
        return self._none() if self._pushed is None else self._pushed

    def pushLimit(self, limit: int) -> bool:
        self._request = replace(self._request, limit=limit)
        return True

    def isPartiallyPushed(self) -> bool:
        # Without a filter the limit is applied to row counts when the scan is planned.
        return bool(self._request.filters) or self._request.top is not None

    def pushTopN(self, orders: Any, limit: int) -> bool:
        top = top_of(orders, limit, self._expressions)
        if top is None or self._request.aggregation is not None:
            return False
        self._request = replace(self._request, top=top)
        return True

    def supportCompletePushDown(self, aggregation: Any) -> bool:
        # Only here are averages visible; sums and counts are pushed.
        self._averages_longs |= averages_longs(aggregation, self._expressions)
        return self._counts_only(aggregation)

    def pushAggregation(self, aggregation: Any) -> bool:
        found = aggregation_of(aggregation, self._expressions)
        if found is None or self._averages_longs:
            return False
        pushed, schema = found
        self._request = replace(self._request, aggregation=pushed, schema=schema)
        return True

    def build(self) -> Any:
        aggregation = self._request.aggregation
        counts_only = aggregation is not None and aggregation.partial.counts_only
        if aggregation is not None and counts_only and not self._request.filters:
            columns = len(aggregation.partial.functions)
            return LocalCount(self.gateway, self._request, columns)
        return LanceScan(self.gateway, self._request, self._expressions)

    def _counts_only(self, aggregation: Any) -> bool:
        """Whether metadata is sufficient for the result, with nothing left to aggregate."""
        if self._request.filters:
            return False
        found = aggregation_of(aggregation, self._expressions)
        if found is None or found[0].partial.keys:
            return False
        return all(f.kind is Kind.COUNT_ALL for f in found[0].partial.functions)

    def _of(self, predicates: Any, positions: list[int], count: int) -> Any:
        """Return the predicates at some positions; mostly these are all or none."""
        if len(positions) == count:
            return predicates
        return chosen(self.gateway, predicates, positions) if positions else self._none()

    def _none(self) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.filter.Predicate"), [])
