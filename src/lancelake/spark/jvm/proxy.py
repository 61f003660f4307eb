"""Base classes of Python objects that Java calls, with defaults of the interfaces."""

from __future__ import annotations

import functools
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.errors.exceptions.captured import CapturedException

from lancelake.errors import LanceTableError, UnsupportedError
from lancelake.spark.jvm.compiled import are_compiled
from lancelake.spark.jvm.failures import thrown, to_java
from lancelake.spark.jvm.gateway import CONNECTOR, Gateway
from lancelake.spark.jvm.python_read import v2_columns

_Class = TypeVar("_Class", bound=type)
_MODES: dict[str, Any] = {}


def implements(*interfaces: str) -> Callable[[_Class], _Class]:
    """Declare the interfaces that a class implements: of Spark's connector API, or of Java."""

    def mark(cls: _Class) -> _Class:
        names = [n if n.startswith("java.") else f"{CONNECTOR}.{n}" for n in interfaces]
        cls.Java = type("Java", (), {"implements": names})  # type: ignore[attr-defined]
        return cls

    return mark


def _translating(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Proxy, *args: Any) -> Any:
        try:
            return method(self, *args)
        except LanceTableError as error:
            raise to_java(self.gateway, error) from error
        except CapturedException as error:
            # Spark's own exceptions are passed on unchanged.
            if error._origin is None:
                raise
            raise thrown(error._origin) from error

    return call


class Proxy:
    """Root of all proxies: our errors reach Spark as Java exceptions that carry them."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def __init_subclass__(cls) -> None:
        for name, member in list(vars(cls).items()):
            if callable(member) and not name.startswith("_") and not isinstance(member, type):
                setattr(cls, name, _translating(member))

    def identity(self) -> str:
        """Text by which Spark compares objects for equality; it may be displayed."""
        return f"{type(self).__name__}@{id(self):x}"

    def toString(self) -> str:
        return self.identity()

    def hashCode(self) -> int:
        return zlib.crc32(self.identity().encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        if other is None or "Proxy" not in other.getClass().getName():
            return False
        return bool(other.toString() == self.toString())


class ScanProxy(Proxy):
    """Defaults of `Scan` and its extensions."""

    def description(self) -> str:
        return self.identity()

    def toBatch(self) -> Any:
        raise UnsupportedError("this scan does not support batch reads")

    def toMicroBatchStream(self, checkpoint: str) -> Any:
        raise UnsupportedError(f"this scan does not support streaming (checkpoint {checkpoint})")

    def toContinuousStream(self, checkpoint: str) -> Any:
        raise UnsupportedError(
            f"this scan does not support continuous streaming (checkpoint {checkpoint})"
        )

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def reportDriverMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomTaskMetric"), [])

    def columnarSupportMode(self) -> Any:
        # Declared once for all partitions, so that none is planned before the query runs. Requested
        # repeatedly, so it is cached.
        application = self.gateway.application
        if application not in _MODES:
            modes = self.gateway.connector("read.Scan$ColumnarSupportMode")
            _MODES[application] = (
                modes.SUPPORTED if are_compiled(self.gateway) else modes.UNSUPPORTED
            )
        return _MODES[application]

    def estimateSizeInBytes(self) -> Any:
        return self.gateway.optional_long(None)

    def reflectsFullyPushedDownFilters(self) -> bool:
        # Otherwise Spark applies the filters again for its estimates.
        return True

    def pushedPredicates(self) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.filter.Predicate"), [])

    def supportsIterativePushdown(self) -> bool:
        return False


class ScanBuilderProxy(Proxy):
    """Defaults of `ScanBuilder` and its extensions."""

    def isPartiallyPushed(self) -> bool:
        return True

    def supportCompletePushDown(self, aggregation: Any) -> bool:  # noqa: ARG002
        return False

    def supportsIterativePushdown(self) -> bool:
        return False


class TableProxy(Proxy, ABC):
    """Defaults of `Table` and its extensions."""

    def id(self) -> str | None:
        return None

    def version(self) -> str | None:
        return None

    @abstractmethod
    def schema(self) -> Any: ...

    def columns(self) -> Any:
        return v2_columns(self.gateway, self.schema())

    def partitioning(self) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.Transform"), [])

    def properties(self) -> Any:
        return self.gateway.map({})

    def constraints(self) -> Any:
        return self.gateway.array(self.gateway.connector("catalog.constraints.Constraint"), [])

    def canRenameConflictingMetadataColumns(self) -> bool:
        return False
