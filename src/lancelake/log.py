"""Records of operations on tables: for `logging`, and for OpenTelemetry if the program uses it.

Nothing is printed unless the program sets up `logging`. If neither listens, an operation costs two
look-ups.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from lancelake.clock import Clock, SystemClock
from lancelake.interrupts import pass_on
from lancelake.version import __version__

Facts: TypeAlias = dict[str, int | str]
"""Names and values of a record: fields of a log record, attributes of a span."""

_ROOT = logging.getLogger("lancelake")
_ROOT.addHandler(logging.NullHandler())

CLEANUP = _ROOT.getChild("cleanup")
COMMIT = _ROOT.getChild("commit")
COMPACTION = _ROOT.getChild("compaction")
INDEX = _ROOT.getChild("index")
MEMWAL = _ROOT.getChild("memwal")
SCAN = _ROOT.getChild("scan")
STORAGE = _ROOT.getChild("storage")

# DataFusion describes every plan in dozens of records, under one logger for each of its crates.
_CHATTY = (
    "datafusion",
    "datafusion_catalog",
    "datafusion_common",
    "datafusion_datasource",
    "datafusion_execution",
    "datafusion_expr",
    "datafusion_functions",
    "datafusion_optimizer",
    "datafusion_physical_expr",
    "datafusion_physical_optimizer",
    "datafusion_physical_plan",
    "datafusion_sql",
    "sqlparser",
)


def _quiet(names: tuple[str, ...]) -> None:
    """Raise the level of loggers to WARNING, except where the program has set one."""
    for name in names:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


_quiet(_CHATTY)

_CLOCK: Clock = SystemClock()


class Operation:
    """An operation in progress, as a context manager.

    If it succeeds and has facts, they make one INFO record: an operation that found nothing to do
    adds none. OpenTelemetry gets a span, of failed operations too, and the metrics of `_count`.
    """

    __slots__ = ("_clock", "_logger", "_scope", "_sentence", "_started_s", "facts", "is_heard")

    def __init__(
        self,
        logger: logging.Logger,
        sentence: str,
        table: str,
        *,
        clock: Clock = _CLOCK,
        started_s: float | None = None,
    ) -> None:
        """Record under a logger; the sentence names facts in braces.

        `started_s` is when the operation began, on the clock that never runs backwards.
        """
        self._logger = logger
        self._sentence = sentence
        self._clock = clock
        self._started_s = clock.monotonic_s() if started_s is None else started_s
        self._scope: _Scope | None = None
        self.facts: Facts = {"table": table}
        self.is_heard = False
        """Whether anyone wants the facts."""

    def __enter__(self) -> Self:
        if _is_loaded(_TRACE) or _is_loaded(_METRICS):
            self.is_heard = True
            _safely(self._begin_span)
        else:
            self.is_heard = self._logger.isEnabledFor(logging.INFO)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.is_heard:
            _safely(functools.partial(self._end, error))

    def _begin_span(self) -> None:
        if _is_loaded(_TRACE):
            passed_ns = round(1e9 * (self._clock.monotonic_s() - self._started_s))
            self._scope = _Scope(self._logger.name, _CLOCK.now_ns() - passed_ns)

    def _end(self, error: BaseException | None) -> None:
        passed_s = self._clock.monotonic_s() - self._started_s
        is_recorded = error is None and len(self.facts) > 1
        if is_recorded:
            self.facts["milliseconds"] = round(1000 * passed_s)
        if self._scope is not None:
            self._scope.end(self.facts, error)
        if is_recorded or error is not None:
            _count(self._logger.name, self.facts, error, passed_s)
        if is_recorded and self._logger.isEnabledFor(logging.INFO):
            self._logger.info(_text(self._sentence, self.facts), extra=self.facts)


def report_retry(
    logger: logging.Logger, reason: object, delay_s: float, **facts: int | str
) -> None:
    """Make a WARNING record of another attempt after a delay, and count it.

    The facts are further fields of the record.
    """
    _safely(functools.partial(_report_retry, logger, reason, delay_s, facts))


def _report_retry(logger: logging.Logger, reason: object, delay_s: float, facts: Facts) -> None:
    if _is_loaded(_METRICS):
        _instruments().retries.add(1, {_KIND: logger.name})
    if logger.isEnabledFor(logging.WARNING):
        delay_ms = round(1000 * delay_s)
        text = f"{reason}; it is tried again in {delay_ms:,} ms"
        extra = {**facts, "reason": str(reason), "delay_milliseconds": delay_ms}
        logger.warning(text, extra=extra)


def _safely(report: Callable[[], None]) -> None:
    """Report; a handler or an exporter that fails must not make the operation fail."""
    try:
        report()
    except Exception as error:  # noqa: BLE001  # whatever handlers and exporters of the user raise
        pass_on(error)
        warnings.warn(f"an operation could not be logged: {error}", RuntimeWarning, stacklevel=2)


def _text(sentence: str, facts: Facts) -> str:
    """Return the sentence, and in words the numbers that it does not name."""
    numbers = {
        name: value
        for name, value in facts.items()
        if isinstance(value, int) and f"{{{name}}}" not in sentence and name not in _DETAILS
    }
    words = [_counted(name, value) for name, value in numbers.items() if value]
    words.append(f"{facts['milliseconds']:,} ms")
    return f"{sentence.format_map(facts)}: {', '.join(words)}"


_DETAILS = frozenset({"milliseconds", "commit_milliseconds", "manifest_bytes"})
"""Fields of a record that its sentence leaves out."""


def _counted(name: str, number: int) -> str:
    """Return a number and its name, as `1 file added` for `files_added`."""
    words = name.replace("_", " ")
    if number == 1:
        words = re.sub(r"(ie)?s\b", lambda end: "y" if end[1] else "", words, count=1)
    return f"{number:,} {words}"


# A program that has a provider has loaded the module that sets it, so that nothing is imported here
# for programs without one.
_TRACE = "opentelemetry.trace"
_METRICS = "opentelemetry.metrics"


_KIND = "lancelake.kind"


def _is_loaded(module: str) -> bool:
    return sys.modules.get(module) is not None


class _Scope:
    """A span of OpenTelemetry that is the current one until it ends."""

    __slots__ = ("_context", "_span", "_token")

    def __init__(self, name: str, start_ns: int) -> None:
        trace = importlib.import_module(_TRACE)
        self._context = importlib.import_module("opentelemetry.context")
        self._span = _tracer().start_span(name, start_time=start_ns)
        self._token = self._context.attach(trace.set_span_in_context(self._span))

    def end(self, facts: Facts, error: BaseException | None) -> None:
        self._context.detach(self._token)
        self._span.set_attributes({f"lancelake.{name}": value for name, value in facts.items()})
        if error is not None:
            trace = importlib.import_module(_TRACE)
            self._span.record_exception(error)
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
        self._span.end()


@functools.cache
def _tracer() -> Any:
    return importlib.import_module(_TRACE).get_tracer("lancelake", __version__)


class _Instruments:
    """What OpenTelemetry counts: operations and retries by kind, and durations."""

    def __init__(self) -> None:
        meter = importlib.import_module(_METRICS).get_meter("lancelake", __version__)
        self.operations = meter.create_counter("lancelake.operations", "{operation}")
        self.durations = meter.create_histogram("lancelake.operation.duration", "s")
        self.retries = meter.create_counter("lancelake.retries", "{retry}")


@functools.cache
def _instruments() -> _Instruments:
    return _Instruments()


def _count(kind: str, facts: Facts, error: BaseException | None, passed_s: float) -> None:
    """Count an operation by its kind and name; tables are too many to count each."""
    if not _is_loaded(_METRICS):
        return
    labels = {_KIND: kind}
    if "operation" in facts:
        labels["lancelake.operation"] = str(facts["operation"])
    if error is not None:
        labels["error.type"] = type(error).__name__
    _instruments().operations.add(1, labels)
    _instruments().durations.record(passed_s, labels)
