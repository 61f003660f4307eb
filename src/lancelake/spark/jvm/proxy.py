"""Objects that Java calls, and errors on their way there."""

from __future__ import annotations

import functools
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from lancelake.errors import LanceTableError, UnsupportedError, type_registry
from lancelake.spark.jvm.catalyst import remember_answers
from lancelake.spark.jvm.gateway import CONNECTOR, RAISED, Gateway
from lancelake.spark.jvm.python_tasks import v2_columns

_MARK = "lancelake-error:"
_CATALOG = "org.apache.spark.sql.classic.Catalog"
_IN_TRACEBACK = re.compile(r"lancelake\.errors\.(\w+): ([^\n]+)")


def to_java(gateway: Gateway, error: LanceTableError) -> Py4JJavaError:
    """Return the exception to raise so that Spark shows one line, with the error inside."""
    inside = gateway.cls("java.lang.RuntimeException")(_MARK + error.to_json())
    if isinstance(error, UnsupportedError):
        return as_raised(gateway.cls("java.lang.UnsupportedOperationException")(str(error), inside))
    return as_raised(gateway.cls("lancelake.LanceException")(str(error), inside))


def asks_for_existence(gateway: Gateway) -> bool:
    """Whether the call comes from `spark.catalog.tableExists`, judging by the JVM stack."""
    frames = gateway.member("java.lang.Thread", "currentThread")().getStackTrace()
    return any(frame.getClassName() == _CATALOG for frame in frames)


def as_raised(exception: Any) -> Py4JJavaError:
    """Return the exception to raise so that Java receives this exception."""
    return Py4JJavaError(RAISED, exception)


def error_of(failure: BaseException) -> LanceTableError | None:
    """Find the error of this library inside a Spark exception.

    Args:
        failure: An exception that Spark raised.

    Returns:
        The error; None if there is none.

    Examples:
        >>> from lancelake.spark import error_of
        >>> try:
        ...     rows = spark.read.format("lance").load(f"{folder}/missing.lance").count()
        ... except Exception as failure:
        ...     type(error_of(failure)).__name__
        'TableNotFoundError'
    """
    seen: BaseException | None = failure
    while seen is not None:
        if isinstance(seen, LanceTableError):
            return seen
        error = error_in_java(
            getattr(seen, "_origin", None) or getattr(seen, "java_exception", None)
        )
        if error is not None:
            return error
        seen = seen.__cause__ or seen.__context__
    return _in_text(str(failure))


def sentence_of(failure: BaseException) -> str:
    """Return the message of a Spark exception, without its query and its plan."""
    first = str(failure).strip().partition("\n")[0]
    return first.partition(" SQLSTATE:")[0].removesuffix(".")


def error_in_java(exception: Any) -> LanceTableError | None:
    """Find the error of this library in a Java exception and its causes."""
    in_traceback: LanceTableError | None = None
    while exception is not None:
        text = exception.getMessage() or ""
        if text.startswith(_MARK):
            return LanceTableError.from_json(text.removeprefix(_MARK))
        in_traceback = in_traceback or _in_text(text)
        exception = exception.getCause()
    return in_traceback


def _in_text(text: str) -> LanceTableError | None:
    """Rebuild an error of a worker from its traceback, which is all that Spark keeps."""
    matches = _IN_TRACEBACK.findall(text)
    if not matches:
        return None
    name, sentence = matches[-1]
    by_name = {cls.__name__: cls for cls in type_registry.values()}
    error = by_name.get(name, LanceTableError)(sentence)
    error.args = (sentence,)
    return error


_Class = TypeVar("_Class", bound=type)


def implements(*interfaces: str) -> Callable[[_Class], _Class]:
    """Declare the interfaces that a class implements: of Spark's connector API, Java, or ours."""

    def mark(cls: _Class) -> _Class:
        full = ("java.", "lancelake.")
        names = [n if n.startswith(full) else f"{CONNECTOR}.{n}" for n in interfaces]
        cls.Java = type("Java", (), {"implements": names})  # type: ignore[attr-defined]
        return cls

    return mark


def _translating(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Proxy, *args: Any) -> Any:
        try:
            answer = method(self, *args)
            facts = answer.facts() if isinstance(answer, Proxy) else None
            return answer if facts is None else remember_answers(self.gateway, answer, facts)
        except LanceTableError as error:
            raise to_java(self.gateway, error) from error
        except CapturedException as error:
            # Spark's own exceptions are passed on unchanged.
            if error._origin is None:
                raise
            raise as_raised(error._origin) from error

    return call


class Proxy:
    """Root of all proxies: our errors reach Spark as Java exceptions that carry them."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def __init_subclass__(cls) -> None:
        for name, member in list(vars(cls).items()):
            if name == "facts" or name.startswith("_"):
                continue
            if callable(member) and not isinstance(member, type):
                setattr(cls, name, _translating(member))

    def facts(self) -> dict[str, object] | None:
        """Return the answers that Java keeps from the start, by the names of methods."""
        return None

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

    def texts(self) -> dict[str, object]:
        """Return the facts by which Spark shows and compares the object."""
        return {"toString": self.toString(), "hashCode": self.hashCode()}

    # Defaults of scans, writes and tables.

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def reportDriverMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomTaskMetric"), [])


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

    def columnarSupportMode(self) -> Any:
        # Declared once for all partitions, so that none is planned before the query runs.
        modes = "read.Scan$ColumnarSupportMode"
        return self.gateway.once(modes, lambda: self.gateway.connector(modes).SUPPORTED)

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
