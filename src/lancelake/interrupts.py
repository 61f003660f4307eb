"""Exceptions that signal handlers raise in the middle of other code."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType, MethodType, TracebackType


def pass_on(error: BaseException | None) -> None:
    """Raise an exception of a signal handler again; leave others alone.

    Python runs handlers between any two steps of the main thread, so that what they raise seems
    to come from the step before, and must not be taken for its failure.
    """
    if error is not None and raised_by_handler(error):
        raise error


def pass_on_handled() -> None:
    """Raise an exception of a signal handler again that code of this library is handling."""
    error = sys.exception()
    if error is None or not isinstance(trace := error.__traceback__, TracebackType):
        return
    # The first frame is of the code that handles it. A caller may handle one while calling.
    if _is_ours(trace) and not all(map(_is_ours, _steps(trace))):
        pass_on(error)


_OURS = f"{__name__.partition('.')[0]}."


def _is_ours(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_globals.get("__name__")
    return isinstance(name, str) and name.startswith(_OURS)


def raised_by_handler(error: BaseException) -> bool:
    """Whether a signal handler raised this exception."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    codes = {step.tb_frame.f_code for step in _steps(error.__traceback__)}
    return not codes.isdisjoint(_handlers())


def _steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: object = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if isinstance(handler, MethodType):
            handler = handler.__func__
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            yield code
