"""Formatting of conditions as SQL text."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from lancelake.expr.condition import (
    And,
    Column,
    ColumnComparison,
    Comparison,
    Condition,
    Constant,
    IsNan,
    IsNull,
    Leaf,
    ListMatch,
    Membership,
    Not,
    Or,
    PlannedLeaf,
    SqlLeaf,
    TextMatch,
    Truth,
)
from lancelake.expr.literals import quoted, to_sql
from lancelake.format.column_path import quoted_name

_SHOWN_VALUES = 20


def condition_sql(condition: Condition, *, most_values: int = _SHOWN_VALUES) -> str:
    """Return a condition in SQL; long lists are shortened to their first values and length."""
    match condition:
        case Not(part=IsNull() as test):
            return f"{_name(test.column)} IS NOT NULL"
        case Not():
            return f"NOT ({condition_sql(condition.part, most_values=most_values)})"
        case And() | Or():
            word = " AND " if isinstance(condition, And) else " OR "
            parts = (condition_sql(part, most_values=most_values) for part in condition.parts)
            return word.join(f"({part})" for part in parts)
        case _:
            return _leaf(condition, most_values)


def _leaf(leaf: Leaf, most_values: int) -> str:
    match leaf:
        case Constant():
            return {True: "true", False: "false", None: "NULL"}[leaf.truth]
        case Truth():
            return _name(leaf.column)
        case Comparison():
            return f"{_name(leaf.column)} {leaf.operator.value} {_value(leaf.value)}"
        case ColumnComparison():
            return f"{_name(leaf.left)} {leaf.operator.value} {_name(leaf.right)}"
        case Membership():
            return f"{_name(leaf.column)} IN ({_list(leaf, most_values)})"
        case IsNull() | IsNan():
            name = _name(leaf.column)
            return f"{name} IS NULL" if isinstance(leaf, IsNull) else f"isnan({name})"
        case TextMatch():
            return f"{leaf.test.value}({_name(leaf.column)}, {quoted(leaf.text)})"
        case SqlLeaf() | ListMatch():
            return leaf.expression.text
        case PlannedLeaf():
            return str(leaf.expression.canonical_name())
        case _:
            assert_never(leaf)


def _list(leaf: Membership, most_values: int) -> str:
    shown = [_value(value) for value in leaf.values[:most_values]]
    more = len(leaf.values) - len(shown)
    shown += ["NULL"] if leaf.has_null else []
    return ", ".join(shown) + (f", ... {more} more" if more > 0 else "")


def _name(column: Column) -> str:
    return ".".join(part if _is_plain(part) else quoted_name(part) for part in column.path)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _value(value: pa.Scalar) -> str:
    return to_sql(value) or str(value)
