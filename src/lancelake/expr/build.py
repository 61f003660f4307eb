"""Building of conditions: plain ones as they are read, the others through DataFusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, assert_never

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.bind import BoundExpression, input_name
from lancelake.expr.condition import (
    Column,
    Condition,
    Constant,
    Path,
    SqlLeaf,
    all_of,
    any_of,
    negated,
)
from lancelake.expr.evaluate import Evaluator, fold, parse
from lancelake.expr.literals import type_at
from lancelake.expr.planned_condition import Translator, list_match
from lancelake.expr.structure import Chain, Negation, Part, Structure, shown
from lancelake.expr.text_need import NOTHING, need_of_node

if TYPE_CHECKING:
    from datafusion.expr import Expr

# This many conditions are evaluated by DataFusion at once: each evaluation has a fixed cost.
_EVALUATED_AT_ONCE = 500


class ConditionSource(Protocol):
    """What a user wrote, whose structure is known and whose parts are read one by one."""

    @property
    def text(self) -> str:
        """The whole, for messages."""
        ...

    def plain(self, part: Part) -> Condition | None:
        """Read a part that is a plain condition; None where it is anything else."""
        ...

    def bound(self, part: Part) -> BoundExpression:
        """Return a part in SQL; raise for one that DataFusion's parser must not get."""
        ...

    def joined(self, parts: Sequence[Part], word: str) -> BoundExpression:
        """Return several parts in SQL, joined by AND or OR."""
        ...


def build(structure: Structure, source: ConditionSource, schema: pa.Schema) -> Condition:
    """Build the condition of a structure; raise for anything that is not a condition."""
    builder = _Builder(source, schema)
    condition = builder.condition(structure)
    if isinstance(condition, Constant) and condition.truth is None:
        raise _no_condition(source.text, pa.null())
    if isinstance(condition, SqlLeaf):
        builder.check(condition, may_be_null=False)
    return condition


class _Builder:
    def __init__(self, source: ConditionSource, schema: pa.Schema) -> None:
        self._source = source
        self._schema = schema
        self._searchable: set[Path] = set()
        """Columns with a condition that an index of texts can help with."""

    def condition(self, structure: Structure) -> Condition:
        """Build the condition of a structure."""
        match structure:
            case Part():
                return self._part(structure)
            case Negation():
                inner = self.condition(structure.part)
                if isinstance(inner, SqlLeaf):
                    self.check(inner, may_be_null=True)
                return negated(inner)
            case Chain():
                return self._chain(structure)
            case _:
                assert_never(structure)

    def check(self, leaf: SqlLeaf, *, may_be_null: bool) -> None:
        """Raise for an expression that DataFusion cannot evaluate, or that is not a condition."""
        evaluator = Evaluator(leaf.expression, is_condition=True)
        dtype = evaluator.result_field("filter", self._schema).type
        if not pa.types.is_boolean(dtype) and not (may_be_null and pa.types.is_null(dtype)):
            raise _no_condition(leaf.expression.text, dtype)

    def _chain(self, chain: Chain) -> Condition:
        parts: list[Condition] = []
        # Conditions on a text that may have an index stay apart, so that it can be asked.
        slow: list[tuple[SqlLeaf, Part]] = []
        for part in chain.parts:
            inner = self.condition(part)
            if isinstance(part, Part) and isinstance(inner, SqlLeaf):
                slow.append((inner, part))
            else:
                parts.append(inner)
        by_column: dict[Path | None, list[Part]] = {}
        for leaf, part in slow:
            by_column.setdefault(self._searched(leaf), []).append(part)
        for some in by_column.values():
            parts += self._leaves(some, chain.word)
        return all_of(parts) if chain.word == "AND" else any_of(parts)

    def _searched(self, leaf: SqlLeaf) -> Path | None:
        """Return the column that a condition is about, if an index of texts may help there."""
        paths = set(leaf.expression.paths)
        return paths.pop() if len(paths) == 1 and paths <= self._searchable else None

    def _leaves(self, slow: Sequence[Part], word: str) -> Iterator[SqlLeaf]:
        """Join parts that DataFusion evaluates, as many as are evaluated at once."""
        for first in range(0, len(slow), _EVALUATED_AT_ONCE):
            parts = slow[first : first + _EVALUATED_AT_ONCE]
            leaf = SqlLeaf(expression=self._source.joined(parts, word))
            self.check(leaf, may_be_null=True)
            yield leaf

    def _part(self, part: Part) -> Condition:
        plain = self._source.plain(part)
        if plain is not None:
            return plain
        bound = self._source.bound(part)
        columns = _columns(bound, self._schema)
        translator = Translator(column=columns.get, other=_refuse, fold=fold)
        node = parse(bound, self._schema)
        try:
            return translator.condition(node)
        except _NotPlainError:
            match = list_match(node, bound, columns.get, fold)
            if match is not None:
                return match
            if len(set(bound.paths)) == 1 and need_of_node(node) != NOTHING:
                self._searchable.add(bound.paths[0])
            return SqlLeaf(expression=bound)


class _NotPlainError(Exception):
    """A part of an expression is not a plain comparison."""


def _refuse(_: Expr) -> Condition:
    raise _NotPlainError


def _columns(bound: BoundExpression, schema: pa.Schema) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for place, path in enumerate(bound.paths):
        dtype = type_at(schema, path)
        if dtype is not None:
            columns[input_name(place)] = Column(path=path, dtype=dtype)
    return columns


def _no_condition(text: str, dtype: pa.DataType) -> InvalidExpressionError:
    problem = f"the filter {shown(text)} does not return a boolean: it returns {dtype}"
    return InvalidExpressionError(problem, text=shown(text))
