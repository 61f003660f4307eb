"""Convert our errors to Java exceptions, and back."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError

from lancelake.errors import LanceTableError, UnsupportedError, type_registry
from lancelake.spark.jvm.gateway import Gateway

_MARK = "lancelake-error:"
_CATALOG = "org.apache.spark.sql.classic.Catalog"
_IN_TRACEBACK = re.compile(r"lancelake\.errors\.(\w+): ([^\n]+)")


def to_java(gateway: Gateway, error: LanceTableError) -> Py4JJavaError:
    """Return the exception to raise so that Spark shows one line, with the error inside."""
    inside = gateway.cls("java.lang.RuntimeException")(_MARK + error.to_json())
    if isinstance(error, UnsupportedError):
        return thrown(gateway.cls("java.lang.UnsupportedOperationException")(str(error), inside))
    return thrown(gateway.cls("java.lang.IllegalArgumentException")(str(error), inside))


def asks_for_existence(gateway: Gateway) -> bool:
    """Whether the call comes from `spark.catalog.tableExists`, judging by the JVM stack."""
    frames = gateway.member("java.lang.Thread", "currentThread")().getStackTrace()
    return any(frame.getClassName() == _CATALOG for frame in frames)


def thrown(exception: Any) -> Py4JJavaError:
    """Return the exception to raise so that Java receives this exception."""
    return Py4JJavaError("raised for Spark", exception)


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
        found = error_in_java(
            getattr(seen, "_origin", None) or getattr(seen, "java_exception", None)
        )
        if found is not None:
            return found
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
    found = _IN_TRACEBACK.findall(text)
    if not found:
        return None
    name, sentence = found[-1]
    by_name = {cls.__name__: cls for cls in type_registry.values()}
    error = by_name.get(name, LanceTableError)(sentence)
    error.args = (sentence,)
    return error
