"""Parsing of SQL text to a condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.arrays import type_at
from lancelake.expr.bind import Binder, BoundExpression, PathOf, input_name
from lancelake.expr.chains import Chain, Negation, Part, Structure, check_chains, structure
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
from lancelake.expr.engine import Evaluator, fold, parse
from lancelake.expr.list_match import list_match
from lancelake.expr.need import NOTHING
from lancelake.expr.planned_condition import Translator
from lancelake.expr.sql_leaf import plain_condition
from lancelake.expr.text_need import need_of_node
from lancelake.expr.tokens import BLANK, shown
from lancelake.format.schema import Schema

if TYPE_CHECKING:
    from datafusion.expr import Expr

# This many conditions are evaluated by DataFusion at once: each evaluation has a fixed cost.
_EVALUATED_AT_ONCE = 500


def sql_condition(
    text: str,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra_names: Sequence[str] = (),
    path_of: PathOf | None = None,
) -> Condition:
    """Parse a condition over the columns of a schema; raise for anything else."""
    binder = Binder(text, schema, extra_names, path_of)
    builder = _Builder(binder, arrow_schema)
    found = builder.condition(structure(binder.tokens, text, binder.is_reserved_column))
    if isinstance(found, Constant) and found.truth is None:
        raise _no_condition(text, pa.null())
    if isinstance(found, SqlLeaf):
        builder.check(found, may_be_null=False)
    return found


class _Builder:
    def __init__(self, binder: Binder, schema: pa.Schema) -> None:
        self._binder = binder
        self._schema = schema
        self._searchable: set[Path] = set()
        """Columns with a condition that an index of texts can help with."""

    def condition(self, found: Structure) -> Condition:
        """Build the condition of a structure."""
        match found:
            case Part():
                return self._part(found)
            case Negation():
                inner = self.condition(found.part)
                if isinstance(inner, SqlLeaf):
                    self.check(inner, may_be_null=True)
                return negated(inner)
            case Chain():
                return self._chain(found)
            case _:
                assert_never(found)

    def check(self, leaf: SqlLeaf, *, may_be_null: bool) -> None:
        """Raise for an expression that DataFusion cannot evaluate, or that is not a condition."""
        evaluator = Evaluator(leaf.expression, is_condition=True)
        dtype = evaluator.result_field("filter", self._schema).type
        if not pa.types.is_boolean(dtype) and not (may_be_null and pa.types.is_null(dtype)):
            raise _no_condition(leaf.expression.text, dtype)

    def _chain(self, found: Chain) -> Condition:
        parts: list[Condition] = []
        slow: list[tuple[SqlLeaf, tuple[int, int]]] = []
        for part in found.parts:
            inner = self.condition(part)
            if isinstance(part, Part) and isinstance(inner, SqlLeaf):
                slow.append((inner, (part.start, part.stop)))
            else:
                parts.append(inner)
        # Conditions on a text that may have an index stay apart, so that it can be asked.
        by_column: dict[Path | None, list[tuple[int, int]]] = {}
        for leaf, place in slow:
            by_column.setdefault(self._searched(leaf), []).append(place)
        for some in by_column.values():
            parts += self._leaves(some, found.word)
        return all_of(parts) if found.word == "AND" else any_of(parts)

    def _searched(self, leaf: SqlLeaf) -> Path | None:
        """Return the column that a condition is about, if an index of texts may help there."""
        paths = set(leaf.expression.paths)
        return paths.pop() if len(paths) == 1 and paths <= self._searchable else None

    def _leaves(self, slow: Sequence[tuple[int, int]], word: str) -> Iterator[SqlLeaf]:
        """Join parts that DataFusion evaluates, as many as are evaluated at once."""
        for first in range(0, len(slow), _EVALUATED_AT_ONCE):
            ranges = slow[first : first + _EVALUATED_AT_ONCE]
            leaf = SqlLeaf(expression=self._binder.joined(ranges, word))
            self.check(leaf, may_be_null=True)
            yield leaf

    def _part(self, part: Part) -> Condition:
        binder, start, stop = self._binder, part.start, part.stop
        if not any(binder.tokens[i].kind not in BLANK for i in range(start, stop)):
            start, stop = 0, len(binder.tokens)  # the parser reports what is missing
        plain = plain_condition(binder, start, stop, self._schema)
        if plain is not None:
            return plain
        check_chains(binder.tokens[start:stop], binder.text)
        bound = binder.bound(start, stop)
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
    found: dict[str, Column] = {}
    for place, path in enumerate(bound.paths):
        dtype = type_at(schema, path)
        if dtype is not None:
            found[input_name(place)] = Column(path=path, dtype=dtype)
    return found


def _no_condition(text: str, dtype: pa.DataType) -> InvalidExpressionError:
    problem = f"the filter {shown(text)} does not return a boolean: it returns {dtype}"
    return InvalidExpressionError(problem, text=shown(text))
