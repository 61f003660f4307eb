"""Translate table-valued functions, such as lance.system.history('db.t'), into metadata tables."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import quoted_path
from lancelake.spark.catalog.procedures import procedure_named
from lancelake.spark.catalog.table_names import full_name
from lancelake.spark.catalog.warehouse import METADATA_TABLES
from lancelake.suggest import suggestion

_PART = r"(?:`[^`]+`|\w+)"
_CALL = re.compile(
    rf"(?P<before>\b(?:FROM|JOIN)\s+)(?P<catalog>{_PART})\s*\.\s*system\s*\.\s*"
    r"(?P<function>\w+)\s*\(\s*(?:table\s*=>\s*)?'(?P<table>[^']+)'\s*\)",
    re.IGNORECASE,
)


def with_metadata_tables(spark: SparkSession, text: str) -> str:
    """Return a statement that reads metadata tables where it called table-valued functions."""
    return _CALL.sub(lambda call: _table(spark, call), text)


def _table(spark: SparkSession, call: re.Match[str]) -> str:
    catalog, function = call["catalog"], call["function"].lower()
    owner = full_name(spark, f"{catalog}.x")
    if owner is None or owner[0] != catalog.strip("`"):
        return call[0]
    if function not in METADATA_TABLES:
        raise _unknown(owner[0], function, call["table"])
    table = full_name(spark, call["table"])
    is_full = table is not None and call["table"].replace("`", "") == ".".join(table)
    if table is None or not (is_full or table[0] == owner[0]):
        table = full_name(spark, f"{catalog}.{call['table']}") or []
    return call["before"] + quoted_path([*table, function])


def _unknown(catalog: str, function: str, table: str) -> InvalidRequestError:
    problem = f"{catalog}.system.{function} is not a table-valued function"
    if procedure_named(function) is None:
        action = suggestion(function, METADATA_TABLES, "functions")
    else:
        action = f"It is a procedure: CALL {catalog}.system.{function}('{table}')."
    return InvalidRequestError(problem, action=action)
