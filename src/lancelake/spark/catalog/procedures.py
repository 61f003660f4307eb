"""Stored procedures: `CALL <catalog>.system.<procedure>(...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.spark.catalog.result_rows import TEXT, WHOLE, ResultRow, row_schema
from lancelake.spark.options.table_options import TableOptions, open_version
from lancelake.spark.options.times import zoned
from lancelake.table.branches import remove_branch
from lancelake.table.clone import create_branch, deep_clone, shallow_clone
from lancelake.table.open import AtTag, AtVersion, OnBranch, open_snapshot
from lancelake.table.restore import restore
from lancelake.table.tags import create_tag, remove_tag

Arguments = Mapping[str, Any]
Results = ResultRow | Sequence[ResultRow] | DataFrame
"""One row, several, or rows with a schema of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An argument; it is optional if it has a default, given in SQL."""

    name: str
    dtype: t.DataType
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure: its first argument is always the table; one without `answer` returns a frame."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    answer: t.StructType | None
    run: Callable[[SparkSession, TableOptions, Arguments], Results]


_VERSION = row_schema(version=WHOLE)
_NAMED = row_schema(name=TEXT, version=WHOLE)
_NAME = row_schema(name=TEXT)
_AT = Parameter(name="version", dtype=TEXT, default="NULL")


def _rollback(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    version, time = given["version"], given["timestamp"]
    if (version is None) == (time is None):
        raise InvalidRequestError(
            "rollback needs either a version or a timestamp", table=table.location.uri
        )
    if time is None:
        return {"version": restore(_at(table, version)).version}
    at = replace(table, rest={**table.rest, "timestamp": zoned(spark, time)})
    return {"version": restore(open_version(at)).version}


def _tag(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    found = _at(table, given["version"])
    create_tag(found, given["name"], AtVersion(found.version))
    return {"name": given["name"], "version": found.version}


def _drop_tag(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    remove_tag(_at(table, None), given["name"])
    return {"name": given["name"]}


def _branch(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    made = create_branch(_at(table, given["version"]), given["name"])
    return {"name": given["name"], "version": made.version}


def _drop_branch(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    remove_branch(table.location, given["name"])
    return {"name": given["name"]}


def _clone(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    target = table.location.beside(given["target"])
    copy = shallow_clone if given["shallow"] else deep_clone
    return {"version": copy(_at(table, given["version"]), target).version}


def _at(table: TableOptions, version: str | None) -> Snapshot:
    """Open a version by number, on the given branch, or by tag."""
    if version is not None and not version.isdigit():
        return open_snapshot(table.location, AtTag(version))
    branch = table.get("branch")
    number = None if version is None else int(version)
    if branch is not None or number is None:
        return open_snapshot(table.location, OnBranch(branch, number))
    return open_snapshot(table.location, AtVersion(number))


_PROCEDURES: dict[str, Procedure] = {}


def add_procedure(procedure: Procedure) -> None:
    """Register a procedure in every catalog, including existing ones."""
    _PROCEDURES[procedure.name.lower()] = procedure


def procedure_names() -> list[str]:
    """List the procedures, sorted."""
    return sorted(_PROCEDURES)


def procedure_named(name: str) -> Procedure | None:
    """Find a procedure by case-insensitive name."""
    return _PROCEDURES.get(name.lower())


def known(
    name: str,
    text: str,
    answer: t.StructType | None,
    run: Callable[[SparkSession, TableOptions, Arguments], Results],
    *parameters: Parameter,
) -> None:
    """Register a procedure whose first argument is the table."""
    table = Parameter(name="table", dtype=TEXT)
    every = (table, *parameters)
    add_procedure(Procedure(name=name, text=text, parameters=every, answer=answer, run=run))


_OF = Parameter(name="name", dtype=TEXT)
known(
    "rollback",
    "restores an older version as the newest",
    _VERSION,
    _rollback,
    _AT,
    Parameter(name="timestamp", dtype=TEXT, default="NULL"),
)
known("tag", "creates a tag for a version", _NAMED, _tag, _OF, _AT)
known("drop_tag", "deletes a tag", _NAME, _drop_tag, _OF)
known("branch", "creates a branch at a version", _NAMED, _branch, _OF, _AT)
known("drop_branch", "deletes a branch", _NAME, _drop_branch, _OF)
known(
    "clone",
    "creates a shallow or deep clone of a table",
    _VERSION,
    _clone,
    Parameter(name="target", dtype=TEXT),
    Parameter(name="shallow", dtype=t.BooleanType(), default="true"),
    _AT,
)
