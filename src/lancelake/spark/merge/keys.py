"""Key of a merge: table columns that its resolved condition compares for equality."""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from lancelake.spark.jvm.catalyst import (
    attribute_id,
    column,
    conjuncts,
    expression,
    ids_named,
    items,
    keeps_values_apart,
    kind,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.merge.binding import Binding

# Functions that Spark applies to a CHAR column before it is compared.
_PADDING = ("StringRPad", "StringTrimRight")
_NO_COLUMN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """A conjunct that compares a table column for equality with a source value."""

    name: str
    target: Any
    source: Any
    is_null_safe: bool


def equalities(binding: Binding, condition: Column) -> list[tuple[Any, Equality | None]]:
    """Return the conjuncts of a condition, with the equality of each, if it is one."""
    gateway = binding.gateway
    mine = {number: name for name, number in binding.target.items()}
    theirs = set(binding.source)
    parts = conjuncts(expression(gateway, condition))
    return [(part, _equality(gateway, part, mine, theirs)) for part in parts]


def key_columns(binding: Binding, condition: Column) -> tuple[str, ...]:
    """Return the table columns that must equal a source value for a match."""
    found = (equality for _, equality in equalities(binding, condition))
    return tuple(dict.fromkeys(equality.name for equality in found if equality is not None))


def with_char_keys(binding: Binding, condition: Column, chars: Container[str]) -> Column:
    """Return a condition that compares CHAR key columns without trailing spaces.

    Spark pads literals that are compared with a CHAR column, but not values of a source, which an
    insert would store padded: a second row with the same key.
    """
    parts = (_compared(binding.gateway, *part, chars) for part in equalities(binding, condition))
    return reduce(and_, parts)


def _compared(gateway: Gateway, part: Any, found: Equality | None, chars: Container[str]) -> Column:
    if found is None or found.name not in chars:
        return column(gateway, part)
    mine, theirs = (f.rtrim(column(gateway, side)) for side in (found.target, found.source))
    return mine.eqNullSafe(theirs) if found.is_null_safe else mine == theirs


def _equality(
    gateway: Gateway, part: Any, mine: Mapping[int, str], theirs: Set[int]
) -> Equality | None:
    if kind(part) not in ("EqualTo", "EqualNullSafe"):
        return None
    sides = items(part.children())
    for target, source in (sides, sides[::-1]):
        name = mine.get(_deciding(gateway, target))
        named = ids_named(source)
        if name is not None and named and named <= theirs:
            is_null_safe = kind(part) == "EqualNullSafe"
            return Equality(name=name, target=target, source=source, is_null_safe=is_null_safe)
    return None


def _deciding(gateway: Gateway, found: Any) -> int:
    """Return the id of the column that determines a value, if distinct values stay distinct."""
    while kind(found) in _PADDING or (kind(found) == "Cast" and keeps_values_apart(gateway, found)):
        found = items(found.children())[0]
    return attribute_id(found) if kind(found) == "AttributeReference" else _NO_COLUMN
