"""Questions to indices as text of a plan, in the notation of pylance."""

from __future__ import annotations

from typing import cast

from lancelake.expr.condition import (
    And,
    Comparison,
    Condition,
    Membership,
    Not,
    Or,
    TextMatch,
    TextTest,
    Truth,
)
from lancelake.expr.condition_sql import condition_sql
from lancelake.format.column_path import join_path

_MOST_VALUES = 20


def question_text(condition: Condition, place: str) -> str:
    """Return a condition with the index that is asked, like `[a >= 1 && a < 5]@a_idx(BTREE)`."""
    match condition:
        case Not():
            return f"NOT({question_text(condition.part, place)})"
        case And() if all(isinstance(part, Comparison) for part in condition.parts):
            bounds = (_comparison(cast(Comparison, part)) for part in condition.parts)
            return f"[{' && '.join(bounds)}]@{place}"
        case And() | Or():
            word = "AND" if isinstance(condition, And) else "OR"
            return f"{word}({','.join(question_text(part, place) for part in condition.parts)})"
        case _:
            return f"[{_leaf(condition)}]@{place}"


def _leaf(condition: Condition) -> str:
    match condition:
        case Comparison():
            return _comparison(condition)
        case Membership() if len(condition.values) == 1 and not condition.has_null:
            return f"{join_path(condition.column.path)} = {condition.values[0]}"
        case Truth():
            return f"{join_path(condition.column.path)} = true"
        case TextMatch() if condition.test is TextTest.CONTAINS:
            return f'contains({join_path(condition.column.path)}, Utf8("{condition.text}"))'
        case _:
            return condition_sql(condition, most_values=_MOST_VALUES)


def _comparison(leaf: Comparison) -> str:
    return f"{join_path(leaf.column.path)} {leaf.operator.value} {leaf.value}"
