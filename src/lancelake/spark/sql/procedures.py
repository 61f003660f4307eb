"""A table in a session, and the procedures on it; statements and table functions of the catalog.

A procedure is a function of Python: its arguments are those of SQL, and `LanceTable` calls it too.
The statements are OPTIMIZE, VACUUM, RESTORE and DESCRIBE HISTORY.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Concatenate, Generic, ParamSpec

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values import descriptions
from lancelake.core.values.metadata import Snapshot, quoted_path
from lancelake.core.values.versions import AsOf, AtTag, AtVersion
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.sql.table_names import full_name, path_name, procedures_of
from lancelake.spark.sql.warehouse import METADATA_TABLES
from lancelake.spark.values.options import TableOptions, add_zone, parse_time
from lancelake.spark.values.spark_types import spark_field

ResultRow = Mapping[str, Any]
"""Values by the name of the column."""

WHOLE, TEXT, FLAG = t.LongType(), t.StringType(), t.BooleanType()
_TYPES = {
    "int": WHOLE,
    "str": TEXT,
    "bool": FLAG,
    "float": t.DoubleType(),
    "Sequence[float]": t.ArrayType(t.DoubleType()),
}
"""Types of SQL, by those of Python."""

Results = ResultRow | Sequence[ResultRow] | DataFrame
"""One row, several, or rows with a schema of their own."""

Rest = ParamSpec("Rest")


def row_schema(**columns: t.DataType) -> t.StructType:
    """Return the schema of nullable columns, by name."""
    return t.StructType([t.StructField(name, dtype) for name, dtype in columns.items()])


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table in a session."""

    spark: SparkSession
    options: TableOptions

    @property
    def engine(self) -> SparkEngine:
        """The engine that runs tasks on the executors of the session."""
        return SparkEngine(self.spark)

    def open(self) -> Table:
        """Open the newest version."""
        return self.options.open()

    def open_at(self, version: str | int | None) -> Table:
        """Open a version by number, on the branch of the table, or by tag."""
        if version is None:
            return self.open()
        text = str(version)
        return self.options.open(AtVersion(int(text)) if text.isdigit() else AtTag(text))

    def parse_time(self, time: str | datetime) -> AsOf:
        """Parse a time, which is in the time zone of the session unless it has one."""
        return parse_time(add_zone(self.spark, time), self.options.location.uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An argument in SQL; it is optional if it has a default, given in SQL."""

    name: str
    dtype: t.DataType
    default: str | None = None

    @staticmethod
    def of(given: inspect.Parameter) -> Parameter:
        """Return an argument of a function; of several types, the first is that of SQL."""
        dtype = _TYPES[str(given.annotation).partition(" | ")[0]]
        if given.default is inspect.Parameter.empty:
            return Parameter(name=given.name, dtype=dtype)
        return Parameter(name=given.name, dtype=dtype, default=_default(given.default))


def _default(value: str | bool | int | None) -> str:
    if value is None:
        return "NULL"
    return _literal(value) if isinstance(value, str | bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Procedure(Generic[Rest]):
    """A function on a table that SQL may call; one without `answer` returns a frame."""

    text: str
    answer: t.StructType | None
    run: Callable[Concatenate[SparkTable, Rest], Results]

    @property
    def name(self) -> str:
        """The name in SQL."""
        return self.run.__name__

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments in SQL: the first is always the table."""
        _, *own = inspect.signature(self.run).parameters.values()
        return (Parameter(name="table", dtype=TEXT), *map(Parameter.of, own))


_PROCEDURES: dict[str, Procedure[...]] = {}
_LOADERS: list[Callable[[], None]] = []


def procedure(
    text: str, answer: t.StructType | None
) -> Callable[[Callable[Concatenate[SparkTable, Rest], Results]], Procedure[Rest]]:
    """Make a function a procedure of every catalog."""

    def add(run: Callable[Concatenate[SparkTable, Rest], Results]) -> Procedure[Rest]:
        added = Procedure(text=text, answer=answer, run=run)
        _PROCEDURES[added.name] = added
        return added

    return add


def procedures_from(load: Callable[[], None]) -> Callable[[], None]:
    """Call a function that imports procedures when one is looked up: few statements call any."""
    _LOADERS.append(load)
    return load


def procedure_names() -> list[str]:
    """List the procedures, sorted."""
    return sorted(_every())


def procedure_named(name: str) -> Procedure[...] | None:
    """Find a procedure by case-insensitive name."""
    return _every().get(name.lower())


def _every() -> dict[str, Procedure[...]]:
    for load in _LOADERS:
        load()
    return _PROCEDURES


class TableAccess(ABC):
    """Access of the methods of `LanceTable` to its versions and to procedures."""

    _table: SparkTable

    def snapshot(self) -> Snapshot:
        """Open the newest version.

        Returns:
            The version with its manifest.

        Examples:
            >>> table.snapshot().version
            1
        """
        return self._table.open().snapshot

    def _show(self, work: Procedure[Rest], *args: Rest.args, **kwargs: Rest.kwargs) -> DataFrame:
        """Run a procedure and return what it answers."""
        answer = work.run(self._table, *args, **kwargs)
        if isinstance(answer, DataFrame) or work.answer is None:
            assert isinstance(answer, DataFrame)  # without a schema, it is a frame
            return answer
        names = work.answer.fieldNames()
        rows = [answer] if isinstance(answer, Mapping) else answer
        values = [tuple(row[name] for name in names) for row in rows]
        return self._table.spark.createDataFrame(values, work.answer)

    def _facts(self, name: str, limit: int | None = None) -> DataFrame:
        """Return the rows of a metadata table."""
        rows = descriptions.facts(name, self.snapshot(), limit)
        schema = t.StructType([spark_field(field) for field in rows.schema])
        values = [tuple(_plain(row, schema).values()) for row in rows.to_pylist()]
        return self._table.spark.createDataFrame(values, schema)


def _plain(row: ResultRow, schema: t.StructType) -> dict[str, object]:
    """Return a row with maps in a form that Spark accepts."""
    maps = {f.name for f in schema.fields if isinstance(f.dataType, t.MapType)}
    return {name: dict(value) if name in maps else value for name, value in row.items()}


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
        raise _unknown_function(owner[0], function, call["table"])
    table = full_name(spark, call["table"])
    is_full = table is not None and call["table"].replace("`", "") == ".".join(table)
    if table is None or not (is_full or table[0] == owner[0]):
        table = full_name(spark, f"{catalog}.{call['table']}") or []
    return call["before"] + quoted_path([*table, function])


def _unknown_function(catalog: str, function: str, table: str) -> InvalidRequestError:
    problem = f"{catalog}.system.{function} is not a table-valued function"
    if procedure_named(function) is None:
        action = suggestion(function, METADATA_TABLES, "functions")
    else:
        action = f"It is a procedure: CALL {catalog}.system.{function}('{table}')."
    return InvalidRequestError(problem, action=action)


_STATEMENT_NAME = r"(?P<name>'[^']+'|(?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+))*)"
_SYNTAX = {
    "optimize": (
        rf"OPTIMIZE\s+{_STATEMENT_NAME}(?:\s+WHERE\s+(?P<where>.+?))?(?:\s+ZORDER\s+BY\s+(?P<zorder>.+))?",
        "OPTIMIZE table [WHERE condition] [ZORDER BY (column, ...)]",
    ),
    "vacuum": (
        rf"VACUUM\s+{_STATEMENT_NAME}(?:\s+RETAIN\s+(?P<hours>\d+)\s+HOURS)?(?P<dry>\s+DRY\s+RUN)?",
        "VACUUM table [RETAIN number HOURS] [DRY RUN]",
    ),
    "restore": (
        rf"RESTORE\s+(?:TABLE\s+)?{_STATEMENT_NAME}(?:\s+TO)?\s+"
        r"(?:VERSION\s+AS\s+OF\s+(?P<version>\d+|'[^']+')|TIMESTAMP\s+AS\s+OF\s+'(?P<time>[^']+)')",
        "RESTORE [TABLE] table [TO] {VERSION AS OF number | TIMESTAMP AS OF 'time'}",
    ),
    "desc": (
        rf"DESC(?:RIBE)?\s+HISTORY\s+{_STATEMENT_NAME}(?:\s+LIMIT\s+(?P<limit>\d+))?",
        "DESCRIBE HISTORY table [LIMIT number]",
    ),
}
_FLAGS = re.IGNORECASE | re.DOTALL
_VERB = re.compile(r"(OPTIMIZE|VACUUM|RESTORE|DESC(RIBE)?\s+HISTORY)\s", _FLAGS)
_TABLE = re.compile(rf"\w+\s+(?:HISTORY\s+|TABLE\s+)?{_STATEMENT_NAME}", _FLAGS)


def translate(spark: SparkSession, text: str) -> str | None:
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
    match = re.fullmatch(pattern, statement, _FLAGS)
    if match is None:
        problem = f"the statement cannot be parsed: {statement}"
        raise InvalidRequestError(problem, action=f"The syntax is {syntax}.")
    given = match.groupdict()
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
            # The newest version comes first in the table; a limit without an order is pushed down.
            end = "ORDER BY version DESC" if given["limit"] is None else f"LIMIT {given['limit']}"
            return f"SELECT * FROM {quoted_path([*parts, 'history'])} {end}"


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
