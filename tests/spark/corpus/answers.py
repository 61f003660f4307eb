"""Results of a query, and the comparison of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.spark.corpus.queries import Query
from tests.spark.corpus.tables import Names

_DIGITS = 9


def difference(spark: SparkSession, query: Query, expected: Names, found: Names) -> str | None:
    """Say how the answers of two sets of tables differ; None when they are the same."""
    wanted, given = (answer(spark, query, names) for names in (expected, found))
    if wanted == given:
        return None
    if isinstance(wanted, str) or isinstance(given, str):
        return f"expected {str(wanted)[:300]}\nfound {str(given)[:300]}"
    missing = [row for row in wanted if row not in given][:3]
    extra = [row for row in given if row not in wanted][:3]
    counts = f"{len(wanted)} rows expected, {len(given)} found"
    return f"{counts}\nmissing {missing}\ntoo many {extra}"


def answer(spark: SparkSession, query: Query, names: Names) -> Sequence[str] | str:
    """Return the rows as text, sorted unless their order counts; or the kind of error."""
    try:
        result = spark.sql(names.fill(query.sql)).collect()
    except PySparkException as error:
        return f"error {error.getCondition()}: {str(error)[:800]}" if _ours(error) else "error"
    except (OverflowError, ValueError):
        return "a value that Python does not know"
    rows = [repr(_plain(row, exact=query.exact)) for row in result]
    return rows if query.ordered else sorted(rows)


def _ours(error: PySparkException) -> bool:
    """Whether an error is more than Spark's own opinion of a value."""
    return error.getCondition() is None or "lancelake" in str(error)


def _plain(value: Any, *, exact: bool) -> Any:
    match value:
        case Row():
            return tuple(_plain(item, exact=exact) for item in value)
        case list() | tuple():
            return [_plain(item, exact=exact) for item in value]
        case dict():
            pairs = [(_plain(k, exact=exact), _plain(v, exact=exact)) for k, v in value.items()]
            return {"map": sorted(pairs, key=repr)}
        case float() if exact or not math.isfinite(value):
            return value
        case float():
            return float(f"{value:.{_DIGITS}g}") + 0.0
        case Decimal():
            return f"{value:f}"
        case bytearray():
            return bytes(value)
        case _:
            return value
