"""Substrings that a text must contain to satisfy a condition; other rows can be pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancelake.expr.condition import (
    Comparison,
    Leaf,
    Operator,
    SqlLeaf,
    TextMatch,
)
from lancelake.expr.engine import parse
from lancelake.expr.literals import is_text
from lancelake.expr.need import NOTHING, Contains, Need, all_needed, any_needed
from lancelake.expr.planned_condition import chain, operands
from lancelake.expr.regex_need import need_of_regex

if TYPE_CHECKING:
    from datafusion.expr import Expr

_WILDCARDS = ("%", "_")
_ESCAPE = "\\"


def need_of(leaf: Leaf, dtype: pa.DataType) -> Need:
    """Return the substrings that a column must contain for a condition on it to be true."""
    match leaf:
        case TextMatch():
            return Contains(leaf.text)
        case Comparison() if leaf.operator is Operator.EQUAL and is_text(leaf.value.type):
            return Contains(str(leaf.value.as_py()))
        case SqlLeaf() if len(set(leaf.expression.paths)) == 1:
            return need_of_node(parse(leaf.expression, _schema(leaf.expression.paths[0], dtype)))
        case _:
            return NOTHING


def _schema(path: Sequence[str], dtype: pa.DataType) -> pa.Schema:
    for name in reversed(path[1:]):
        dtype = pa.struct([(name, dtype)])
    return pa.schema([(path[0], dtype)])


def need_of_node(node: Expr) -> Need:
    """Return what the one text that a parsed condition is about must contain."""
    match node.variant_name():
        case "BinaryExpr" if node.rex_call_operator() in ("AND", "OR"):
            name = node.rex_call_operator()
            parts = [need_of_node(part) for part in chain(node, name)]
            return all_needed(parts) if name == "AND" else any_needed(parts)
        case "Like":
            return _of_like(node)
        case "ScalarFunction" if node.schema_name().partition("(")[0] == "regexp_like":
            return _of_regex(node)
        case _:
            return NOTHING


def _of_like(node: Expr) -> Need:
    value, pattern = operands(node)
    variant = node.to_variant()
    text = _text(pattern)
    is_plain = not variant.negated() and variant.escape_char() is None
    is_known = value.variant_name() == "Column" and " ILIKE " not in node.canonical_name()
    if text is None or not is_plain or not is_known:
        return NOTHING
    return all_needed([Contains(part) for part in _between_wildcards(text) if part])


def _between_wildcards(pattern: str) -> list[str]:
    """Return the literal parts of a LIKE pattern; an escape ends a part."""
    parts, is_escaped = [""], False
    for letter in pattern:
        if is_escaped or letter in _WILDCARDS:
            parts.append("")
            is_escaped = False
        elif letter == _ESCAPE:
            is_escaped = True
        else:
            parts[-1] += letter
    return parts


def _of_regex(node: Expr) -> Need:
    arguments = operands(node)
    if len(arguments) != 2 or arguments[0].variant_name() != "Column":  # noqa: PLR2004  # no flags
        return NOTHING
    pattern = _text(arguments[1])
    return NOTHING if pattern is None else need_of_regex(pattern)


def _text(node: Expr) -> str | None:
    value = node.python_value() if node.variant_name() == "Literal" else None
    is_known = value is not None and value.is_valid and is_text(value.type)
    return str(value.as_py()) if is_known and value is not None else None
