"""Key of a merge on Spark Connect, from the columns of its condition.

The server resolves a condition and does not return the result, so only equalities between columns
that are qualified with the aliases of both sides can be found. A condition as text is only parsed
by the server, and has no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, SparkSession

from lancelake.spark.merge.explicit import name_parts

_EQUALITIES = ("==", "<=>")


def connect_key_columns(
    spark: SparkSession, condition: Column, target_name: str, source_name: str
) -> tuple[str, ...]:
    """Return the columns of the table that a condition compares for equality with the source."""
    session: Any = spark
    built: Any = condition
    sides = {target_name.lower(), source_name.lower()}
    found: dict[str, None] = {}
    for part in _conjuncts(built.to_plan(session.client)):
        call = part.unresolved_function
        if call.function_name in _EQUALITIES:
            names = dict(_reference(argument) for argument in call.arguments)
            if set(names) == sides and all(names.values()):
                found[names[target_name.lower()]] = None
    return tuple(found)


def _conjuncts(expression: Any) -> Iterator[Any]:
    if expression.unresolved_function.function_name == "and":
        for argument in expression.unresolved_function.arguments:
            yield from _conjuncts(argument)
    else:
        yield expression


def _reference(expression: Any) -> tuple[str, str]:
    """Return the side and the column of a column reference; empty for other expressions."""
    parts = name_parts(expression.unresolved_attribute.unparsed_identifier)
    return (parts[0].lower(), parts[1]) if len(parts) == 2 else ("", "")  # noqa: PLR2004
