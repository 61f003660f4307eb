"""Scans of requests with columns and filters, for tables whose partitions Python plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.expr.condition import Condition
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, ScanBuilderProxy, ScanProxy, implements
from lancelake.spark.jvm.python_read import (
    input_partitions,
    java_schema,
    python_schema,
    reader_factory,
)
from lancelake.spark.reading.partition import TravelingPartition, encode, read


class FilteredRequest(Protocol):
    """A frozen dataclass with the columns and filters of a read."""

    @property
    def schema(self) -> t.StructType:
        """The columns."""
        ...

    @property
    def filters(self) -> tuple[Condition, ...]:
        """Conditions that all rows satisfy."""
        ...


Request = TypeVar("Request", bound=FilteredRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReads(Generic[Request]):
    """How requests of one kind are read.

    `narrowed` adds what a pushed condition excludes beyond filtering rows.
    """

    types: Callable[[Request], Callable[[tuple[str, ...]], pa.DataType | None]]
    describe: Callable[[Request], str]
    partitions: Callable[[Request], Iterable[TravelingPartition]]
    narrowed: Callable[[Request, Condition], Request] = lambda request, _: request


@implements("read.SupportsPushDownRequiredColumns", "read.SupportsPushDownV2Filters")
class RequestScanBuilder(ScanBuilderProxy, Generic[Request]):
    """Pushes columns and filters down to a request."""

    def __init__(self, gateway: Gateway, request: Request, reads: RequestReads[Request]) -> None:
        super().__init__(gateway)
        self._request, self._reads = request, reads
        self._expressions = JavaExpressions(gateway, reads.types(request))
        self._pushed: list[Any] = []

    def pruneColumns(self, required: Any) -> None:
        self._request = _replaced(self._request, schema=python_schema(required))

    def pushPredicates(self, predicates: Any) -> Any:
        left: list[Any] = []
        for predicate in predicates:
            known = self._expressions.condition(predicate)
            if known is None:
                left.append(predicate)
                continue
            self._pushed.append(predicate)
            request = _replaced(self._request, filters=(*self._request.filters, known))
            self._request = self._reads.narrowed(request, known)
        return self._predicates(left)

    def pushedPredicates(self) -> Any:
        return self._predicates(self._pushed)

    def build(self) -> Any:
        return _Scan(self.gateway, self._request, self._reads)

    def _predicates(self, items: list[Any]) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.filter.Predicate"), items)


@implements("read.Scan")
class _Scan(ScanProxy, Generic[Request]):
    def __init__(self, gateway: Gateway, request: Request, reads: RequestReads[Request]) -> None:
        super().__init__(gateway)
        self._request, self._reads = request, reads

    def identity(self) -> str:
        return self._reads.describe(self._request)

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

    def toBatch(self) -> Any:
        return _Batch(self.gateway, self._request, self._reads)


@implements("read.Batch")
class _Batch(Proxy, Generic[Request]):
    def __init__(self, gateway: Gateway, request: Request, reads: RequestReads[Request]) -> None:
        super().__init__(gateway)
        self._request, self._reads = request, reads

    def identity(self) -> str:
        return self._reads.describe(self._request)

    def planInputPartitions(self) -> Any:
        parts = [encode(part) for part in self._reads.partitions(self._request)]
        return input_partitions(self.gateway, parts)

    def createReaderFactory(self) -> Any:
        return reader_factory(self.gateway, read, self._request.schema)


def _replaced(request: Request, **changes: Any) -> Request:
    changed: Request = replace(request, **changes)  # type: ignore[type-var]  # a dataclass
    return changed
