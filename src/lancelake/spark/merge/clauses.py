"""What a merge does with rows, in Spark's expressions."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumns:
    """Write a row with these values; None as values takes the source's columns by name."""

    values: dict[str, Column] | None
    condition: Column | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Take the row out of the table."""

    condition: Column | None = None


Clause = SetColumns | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """The clauses of a merge; of each kind the first whose condition holds acts."""

    matched: tuple[Clause, ...] = ()
    not_matched: tuple[SetColumns, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()
