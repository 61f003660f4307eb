"""Expressions that Spark has resolved already, and the columns that they stand for.

A resolved expression names columns by number. Whatever becomes of the rows on the way, fetched,
cached or sent through Python, columns get numbers again before such an expression is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.spark.jvm.catalyst import (
    attribute_map,
    column,
    conjuncts,
    expression,
    ids_named,
    items,
    kind,
    known_as,
    renumbered,
)
from lancelake.spark.jvm.door import Door
from lancelake.spark.merge.clauses import Clause, Remove, SetColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The attributes of both sides of a command; those of the source by position."""

    door: Door
    target: dict[str, Any]
    source: tuple[Any, ...] = ()
    condition: Column | None = None

    def named(self, expressions: Iterable[Column | str]) -> tuple[str, ...]:
        """Return the columns of the table that expressions refer to."""
        ids = self._ids(expressions)
        return tuple(name for name, attribute in self.target.items() if _id(attribute) in ids)

    def source_positions(self, expressions: Iterable[Column | str]) -> tuple[int, ...]:
        """Return which columns of the source expressions refer to."""
        ids = self._ids(expressions)
        return tuple(i for i, attribute in enumerate(self.source) if _id(attribute) in ids)

    def of_target(self, frame: DataFrame) -> DataFrame:
        """Return a frame whose columns of the table have their numbers; others stay."""
        shown = [self._bound(f.col(_quoted(c)), c) for c in frame.columns]
        return frame.select(*shown)

    def renewed(self) -> Renewed:
        """Return the same columns under numbers that no plan has yet."""
        target = {name: attribute.newInstance() for name, attribute in self.target.items()}
        source = tuple(attribute.newInstance() for attribute in self.source)
        before = [*self.target.values(), *self.source]
        pairs = zip(before, [*target.values(), *source], strict=True)
        return Renewed(
            binding=replace(self, target=target, source=source),
            numbers=attribute_map(self.door, pairs),
        )

    def unpacked(
        self, rows: DataFrame, target: tuple[str, Sequence[str]], source: tuple[str, Sequence[str]]
    ) -> DataFrame:
        """Return rows with the members of their structs as columns that have their numbers.

        A column that came after the command was resolved has none, and no expression names it.
        """
        found = [f.col(_quoted(c)) for c in rows.columns]
        known = [member for member in target[1] if member in self.target]
        every = [(target[0], member, self.target[member]) for member in known]
        if source[0] in rows.columns:
            pairs = zip(source[1], self.source, strict=True)
            every += [(source[0], member, attribute) for member, attribute in pairs]
        for number, (struct, member, attribute) in enumerate(every):
            value = f.col(_quoted(struct)).getField(member)
            found.append(known_as(self.door, value, attribute, f"__lance_{number}"))
        return rows.select(*found)

    def key_pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs (target column, source column) that must be equal for a match."""
        if self.condition is None:
            return ()
        mine = {_id(attribute): name for name, attribute in self.target.items()}
        theirs = {_id(attribute): attribute.name() for attribute in self.source}
        pairs: list[tuple[str, str]] = []
        for part in conjuncts(expression(self.door, self.condition)):
            sides = items(part.children()) if kind(part) == "EqualTo" else []
            ids = [_id(side) for side in sides if kind(side) == "AttributeReference"]
            for first, second in (ids, ids[::-1]) if len(ids) == len(sides) == 2 else ():  # noqa: PLR2004
                if first in mine and second in theirs:
                    pairs.append((mine[first], theirs[second]))
        return tuple(pairs)

    def _ids(self, expressions: Iterable[Column | str]) -> set[int]:
        named = (ids_named(expression(self.door, _column(found))) for found in expressions)
        return set().union(*named)

    def _bound(self, found: Column, name: str) -> Column:
        attribute = self.target.get(name)
        return found if attribute is None else known_as(self.door, found, attribute, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """Columns under new numbers: a plan may not have a number twice."""

    binding: Binding
    numbers: Any

    def clause(self, clause: Clause) -> Clause:
        """Return a clause whose expressions use the new numbers."""
        condition = None if clause.condition is None else self._column(clause.condition)
        if isinstance(clause, Remove):
            return Remove(condition=condition)
        values = {name: self._column(value) for name, value in (clause.values or {}).items()}
        return SetColumns(values=values, condition=condition)

    def _column(self, found: Column) -> Column:
        door = self.binding.door
        return column(door, renumbered(door, expression(door, found), self.numbers))


def _column(found: Column | str) -> Column:
    return f.expr(found) if isinstance(found, str) else found


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
