"""Find the columns that expressions need, by running Spark's analyzer on empty frames.

For sessions of Spark Connect, which do not return resolved expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

# Without a column of that name, Spark resolves such a word as a function.
_FUNCTIONS_WITHOUT_PARENTHESES = frozenset(
    {
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "grouping__id",
        "localtimestamp",
        "session_user",
        "user",
    }
)
_LOGS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

Build = Callable[[Sequence[str]], DataFrame]


def needed_columns(
    build: Build, columns: Sequence[str], always: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a minimal set of columns with which a frame can be resolved.

    `build` creates the frame from the columns it is given. If all of them do not suffice, Spark's
    error is raised.
    """
    build(columns).schema  # noqa: B018  # Spark resolves the frame here
    functions = {c for c in columns if c.lower() in _FUNCTIONS_WITHOUT_PARENTHESES}
    known = [c for c in columns if c in functions or c in always]
    rest = [c for c in columns if c not in functions and c not in always]
    with _without_log():
        found = {*known, *_fewest(build, rest, known)}
    return tuple(c for c in columns if c in found)


def empty_frame(spark: SparkSession, fields: Sequence[t.StructField]) -> DataFrame:
    """Return a frame without rows."""
    return spark.createDataFrame([], t.StructType(list(fields)))


@contextmanager
def _without_log() -> Iterator[None]:
    """Suppress logging of failed attempts, since Spark logs every error with its stack trace."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _fewest(build: Build, candidates: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Return the candidates that are needed in addition to other columns, by bisection."""
    if not candidates or _resolves(build, beside):
        return []
    if len(candidates) == 1:
        return list(candidates)
    middle = len(candidates) // 2
    first, second = candidates[:middle], candidates[middle:]
    of_second = _fewest(build, second, [*beside, *first])
    return [*_fewest(build, first, [*beside, *of_second]), *of_second]


def _resolves(build: Build, columns: Sequence[str]) -> bool:
    try:
        build(columns).schema  # noqa: B018  # Spark resolves the frame here
    except AnalysisException:
        return False
    return True
