"""Messages of Spark exceptions that carry an error of this library: its sentence only.

Spark adds the stack traces of the JVM, the plan, and the traceback of the worker, once for each
exception that it wraps around the cause.
"""

from __future__ import annotations

import functools
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions import captured
from pyspark.errors.exceptions.captured import (
    CapturedException,
    PythonException,
    UnknownException,
)

from lancelake.spark.jvm.failures import error_in_java

_MARK = "_lancelake_short"
_MOST_LINES = 3


class LanceFailure(CapturedException, Py4JJavaError):  # type: ignore[misc]
    """A Java exception that PySpark has no class for, with an error of this library inside."""

    def __init__(self, origin: Any) -> None:
        CapturedException.__init__(self, origin=origin)
        self.errmsg, self.java_exception, self.exception_cmd = "", origin, None


class WorkerFailure(PythonException):
    """An error of this library in a Python worker, without the traceback of the worker."""

    def __str__(self) -> str:
        """Return the sentence of the error."""
        return CapturedException.__str__(self)


def install() -> None:
    """Shorten the messages of exceptions that PySpark converts from Java."""
    original = captured.convert_exception
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def convert(exception: Any) -> CapturedException:
        return _short(original(exception), exception)

    setattr(convert, _MARK, True)
    captured.convert_exception = convert  # type: ignore[assignment]


def _short(found: CapturedException, exception: Any) -> CapturedException:
    is_unknown = isinstance(found, UnknownException)
    text = str(getattr(found, "_desc", ""))
    error = error_in_java(exception)
    if error is None:
        return found
    if not is_unknown and len(text.splitlines()) <= _MOST_LINES and str(error) in text:
        return found
    if is_unknown:
        found = LanceFailure(exception)
    elif isinstance(found, PythonException):
        found = WorkerFailure(origin=exception)
    found._desc = str(error)
    return found
