"""Bind resolved Spark expressions to the columns of both sides.

A resolved expression refers to columns by id. Rows that were fetched, cached or sent through Python
have lost these ids, which are restored before such an expression is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.format.column_path import quoted_name
from lancelake.format.frozen import FrozenMap
from lancelake.spark.jvm.catalyst import (
    BareRelation,
    attribute_id,
    attribute_map,
    column,
    expression,
    ids_named,
    items,
    known_as,
    renumbered,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.merge.explicit import ExplicitClause
from lancelake.table.merge.clauses import DeleteRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """A column that Spark pads when reading: the stored value, and the padded one."""

    stored: Any
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The attributes of both sides of a command; those of the source by position."""

    gateway: Gateway
    target: dict[str, Any]
    source: tuple[Any, ...] = ()
    padded: Mapping[str, Padded] = field(default_factory=dict)

    @staticmethod
    def of(gateway: Gateway, target: BareRelation, source: Sequence[Any] = ()) -> Binding:
        """Bind the columns of a table and of a source."""
        attributes = {attribute.name(): attribute for attribute in items(target.shown.output())}
        bound = Binding(gateway=gateway, target=attributes, source=tuple(source))
        if target.shown is target.relation:
            return bound
        stored = items(target.relation.output())
        pairs = zip(stored, items(target.shown.projectList()), strict=True)
        padded = {
            made.name(): Padded(stored=attribute, value=made.child())
            for attribute, made in pairs
            if attribute_id(made) != attribute_id(attribute)
        }
        return replace(bound, padded=padded)

    def named(self, expressions: Iterable[Column]) -> tuple[str, ...]:
        """Return the columns of the table that expressions refer to."""
        ids = self._ids(expressions)
        return tuple(name for name, found in self.target.items() if attribute_id(found) in ids)

    def source_positions(self, expressions: Iterable[Column]) -> tuple[int, ...]:
        """Return the positions of source columns that expressions refer to."""
        ids = self._ids(expressions)
        return tuple(i for i, found in enumerate(self.source) if attribute_id(found) in ids)

    def of_target(self, frame: DataFrame) -> DataFrame:
        """Return a frame with the attribute ids of the table's columns; others are unchanged."""
        shown = [self._bound(f.col(quoted_name(c)), c) for c in frame.columns]
        return frame.select(*shown)

    def renewed(self) -> Renewed:
        """Return the same columns with new attribute ids."""
        target = {name: attribute.newInstance() for name, attribute in self.target.items()}
        source = tuple(attribute.newInstance() for attribute in self.source)
        stored = {name: found.stored.newInstance() for name, found in self.padded.items()}
        before = [*self.target.values(), *self.source, *(p.stored for p in self.padded.values())]
        pairs = zip(before, [*target.values(), *source, *stored.values()], strict=True)
        numbers = attribute_map(self.gateway, pairs)
        padded = {
            name: Padded(stored=stored[name], value=renumbered(self.gateway, found.value, numbers))
            for name, found in self.padded.items()
        }
        return Renewed(
            binding=replace(self, target=target, source=source, padded=padded), numbers=numbers
        )

    def unpacked(
        self, rows: DataFrame, target: tuple[str, Sequence[str]], source: tuple[str, Sequence[str]]
    ) -> DataFrame:
        """Return rows with the fields of their structs as columns with attribute ids.

        A column that was added after the command was resolved has none, and no expression refers to
        it.
        """
        found = [f.col(quoted_name(c)) for c in rows.columns]
        known = [member for member in target[1] if member in self.target]
        every = [(target[0], member, self._stored(member)) for member in known]
        if source[0] in rows.columns:
            pairs = zip(source[1], self.source, strict=True)
            every += [(source[0], member, attribute) for member, attribute in pairs]
        for number, (struct, member, attribute) in enumerate(every):
            value = f.col(quoted_name(struct)).getField(member)
            found.append(known_as(self.gateway, value, attribute, f"__lance_{number}"))
        unpacked = rows.select(*found)
        padded = list(self._padded_columns(known))
        return unpacked.select("*", *padded) if padded else unpacked

    def _stored(self, name: str) -> Any:
        found = self.padded.get(name)
        return self.target[name] if found is None else found.stored

    def _padded_columns(self, names: Iterable[str]) -> Iterator[Column]:
        for number, name in enumerate(names):
            if name in self.padded:
                value = column(self.gateway, self.padded[name].value)
                yield known_as(self.gateway, value, self.target[name], f"__lance_padded_{number}")

    def _ids(self, expressions: Iterable[Column]) -> set[int]:
        named = (ids_named(expression(self.gateway, found)) for found in expressions)
        return set().union(*named)

    def _bound(self, found: Column, name: str) -> Column:
        attribute = self.target.get(name)
        return found if attribute is None else known_as(self.gateway, found, attribute, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """Columns with new attribute ids, since ids must be unique in a plan."""

    binding: Binding
    numbers: Any

    def clause(self, clause: ExplicitClause) -> ExplicitClause:
        """Return a clause whose expressions use the new ids."""
        condition = None if clause.condition is None else self._column(clause.condition)
        if isinstance(clause, DeleteRow):
            return DeleteRow(condition=condition)
        values = {name: self._column(value) for name, value in clause.values.items()}
        return replace(clause, values=FrozenMap(values), condition=condition)

    def _column(self, found: Column) -> Column:
        gateway = self.binding.gateway
        return column(gateway, renumbered(gateway, expression(gateway, found), self.numbers))
