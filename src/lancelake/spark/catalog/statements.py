"""Translate statements that Spark's grammar does not have into those that it has.

These are OPTIMIZE, VACUUM, RESTORE and DESCRIBE HISTORY, and queries of table-valued functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import SparkSession

from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import quoted_path
from lancelake.spark.catalog.table_functions import with_metadata_tables
from lancelake.spark.catalog.table_names import full_name, path_name, procedures_of

_NAME = r"(?P<name>'[^']+'|(?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+))*)"
_SYNTAX = {
    "optimize": (
        rf"OPTIMIZE\s+{_NAME}(?:\s+WHERE\s+(?P<where>.+?))?(?:\s+ZORDER\s+BY\s+(?P<zorder>.+))?",
        "OPTIMIZE table [WHERE condition] [ZORDER BY (column, ...)]",
    ),
    "vacuum": (
        rf"VACUUM\s+{_NAME}(?:\s+RETAIN\s+(?P<hours>\d+)\s+HOURS)?(?P<dry>\s+DRY\s+RUN)?",
        "VACUUM table [RETAIN number HOURS] [DRY RUN]",
    ),
    "restore": (
        rf"RESTORE\s+(?:TABLE\s+)?{_NAME}(?:\s+TO)?\s+"
        r"(?:VERSION\s+AS\s+OF\s+(?P<version>\d+|'[^']+')|TIMESTAMP\s+AS\s+OF\s+'(?P<time>[^']+)')",
        "RESTORE [TABLE] table [TO] {VERSION AS OF number | TIMESTAMP AS OF 'time'}",
    ),
    "desc": (
        rf"DESC(?:RIBE)?\s+HISTORY\s+{_NAME}(?:\s+LIMIT\s+(?P<limit>\d+))?",
        "DESCRIBE HISTORY table [LIMIT number]",
    ),
}
_FLAGS = re.IGNORECASE | re.DOTALL
_VERB = re.compile(r"(OPTIMIZE|VACUUM|RESTORE|DESC(RIBE)?\s+HISTORY)\s", _FLAGS)
_TABLE = re.compile(rf"\w+\s+(?:HISTORY\s+|TABLE\s+)?{_NAME}", _FLAGS)


def translated(spark: SparkSession, text: str) -> str | None:
    """Return the statement as one that Spark has; None if its table is not a Lance table."""
    statement = text.strip().rstrip(";").rstrip()
    if _VERB.match(statement) is None:
        return with_metadata_tables(spark, text)
    table = _TABLE.match(statement)
    parts = None if table is None else _parts(spark, table["name"])
    if parts is None:
        return None
    verb = next(verb for verb in _SYNTAX if statement.lower().startswith(verb))
    pattern, syntax = _SYNTAX[verb]
    found = re.fullmatch(pattern, statement, _FLAGS)
    if found is None:
        problem = f"the statement cannot be parsed: {statement}"
        raise InvalidRequestError(problem, action=f"The syntax is {syntax}.")
    given = found.groupdict()
    match verb:
        case "optimize":
            columns = (given["zorder"] or "").strip().removeprefix("(").removesuffix(")").strip()
            return _call(spark, parts, "compact", where=given["where"], z_order_by=columns or None)
        case "vacuum":
            older = None if given["hours"] is None else f"{given['hours']}h"
            return _call(
                spark, parts, "cleanup", older_than=older, dry_run=given["dry"] is not None
            )
        case "restore":
            version = given["version"] and given["version"].strip("'")
            return _call(spark, parts, "rollback", version=version, timestamp=given["time"])
        case _:
            limit = "" if given["limit"] is None else f" LIMIT {given['limit']}"
            return f"SELECT * FROM {quoted_path([*parts, 'history'])} ORDER BY version DESC{limit}"


def _parts(spark: SparkSession, name: str) -> list[str] | None:
    """Return the full name of a table that is given by its name, or by its path in quotes."""
    return path_name(spark, name.strip("'")) if name.startswith("'") else full_name(spark, name)


def _call(
    spark: SparkSession, parts: Sequence[str], procedure: str, **arguments: str | bool | None
) -> str:
    given = {"table": quoted_path(parts), **arguments}
    texts = [f"{name} => {_literal(value)}" for name, value in given.items() if value is not None]
    home = procedures_of(spark, parts[0])
    return f"CALL {quoted_path([home, 'system', procedure])}({', '.join(texts)})"


def _literal(value: str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
