"""Conditions: the tree of a filter, common to SQL, pyarrow expressions and Spark filters.

A condition is true, false or null for a row. Values compare as in official Lance: floating-point
numbers in their total order, in which NaN equals itself and is greater than every number (less, if
its sign is negative), but with equal zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

import pyarrow as pa

from lancelake.expr.bind import BoundExpression

Path = tuple[str, ...]


class Operator(Enum):
    """A comparison of a column with a constant or another column."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="

    @property
    def mirrored(self) -> Operator:
        """The operator with its operands exchanged."""
        return _MIRRORED.get(self, self)


_MIRRORED = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_EQUAL: Operator.GREATER_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_EQUAL: Operator.LESS_EQUAL,
}


class TextTest(Enum):
    """A test of a part of a text."""

    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, or a field of a struct, by its path."""

    path: Path
    dtype: pa.DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A condition with the same result for every row."""

    truth: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The value of a boolean column."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison with a constant of the column's type, which is not null."""

    column: Column
    operator: Operator
    value: pa.Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnComparison:
    """A comparison of two columns of one type."""

    left: Column
    operator: Operator
    right: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Whether a column has one of many values of its type, none of them null.

    `has_null` is set when the list has a null: values that are not found are then unknown.
    """

    column: Column
    values: pa.Array
    has_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """Whether a column is null."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNan:
    """Whether a floating-point number is NaN, of either sign."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """A test of the text in a column."""

    column: Column
    test: TextTest
    text: str


class ListTest(Enum):
    """A test of the elements of a list."""

    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMatch:
    """Whether a list has one, or all, of some elements; null where the list is null.

    Elements are equal if all their bits are equal; null elements are equal.
    """

    column: Column
    test: ListTest
    values: pa.Array
    expression: BoundExpression
    """The condition in SQL, which DataFusion evaluates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLeaf:
    """A condition that only DataFusion can evaluate, in SQL."""

    expression: BoundExpression


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedLeaf:
    """A condition of a DataFusion plan; it cannot leave the process."""

    expression: Any
    table: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """Negation of a condition; null where it is null."""

    part: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """True where all parts are true, false where one is false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    """True where one part is true, false where all are false."""

    parts: tuple[Condition, ...]


Leaf = (
    Constant
    | Truth
    | Comparison
    | ColumnComparison
    | Membership
    | IsNull
    | IsNan
    | TextMatch
    | ListMatch
    | SqlLeaf
    | PlannedLeaf
)
Condition = Leaf | Not | And | Or


def all_of(parts: Sequence[Condition]) -> Condition:
    """Join conditions by AND."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(parts=tuple(flat)) if flat else Constant(truth=True)


def any_of(parts: Sequence[Condition]) -> Condition:
    """Join conditions by OR; equalities on one column become one membership."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, Or) else (part,))]
    merged = _merged_equalities(flat)
    if not merged:
        return Constant(truth=False)
    return merged[0] if len(merged) == 1 else Or(parts=tuple(merged))


def negated(part: Condition) -> Condition:
    """Return the negation of a condition."""
    if isinstance(part, Not):
        return part.part
    if isinstance(part, Constant):
        return Constant(truth=None if part.truth is None else not part.truth)
    return Not(part=part)


def paths_of(condition: Condition) -> tuple[Path, ...]:
    """Return the distinct columns of a condition."""
    return tuple(dict.fromkeys(p for leaf in leaves(condition) for p in _leaf_paths(leaf)))


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the leaves of a condition."""
    match condition:
        case And() | Or():
            for part in condition.parts:
                yield from leaves(part)
        case Not():
            yield from leaves(condition.part)
        case _:
            yield condition


def needs_datafusion(condition: Condition) -> bool:
    """Whether a part of a condition is evaluated by DataFusion."""
    return any(isinstance(leaf, ListMatch | SqlLeaf | PlannedLeaf) for leaf in leaves(condition))


def _leaf_paths(leaf: Leaf) -> tuple[Path, ...]:
    match leaf:
        case Constant():
            return ()
        case Truth() | Comparison() | Membership() | IsNull() | IsNan() | TextMatch() | ListMatch():
            return (leaf.column.path,)
        case ColumnComparison():
            return leaf.left.path, leaf.right.path
        case SqlLeaf():
            return leaf.expression.paths
        case PlannedLeaf():
            return tuple((name,) for name in leaf.names)
        case _:
            assert_never(leaf)


def _merged_equalities(parts: Sequence[Condition]) -> list[Condition]:
    """Merge `a = 1 OR a IN (2, 3)` into one membership, at the position of the first."""
    by_column: dict[tuple[Path, pa.DataType], list[Membership | Comparison]] = {}
    for part in parts:
        if (equality := _equality(part)) is not None:
            by_column.setdefault((equality.column.path, equality.column.dtype), []).append(equality)
    merged: list[Condition] = []
    for part in parts:
        equality = _equality(part)
        if equality is None:
            merged.append(part)
            continue
        alike = by_column.pop((equality.column.path, equality.column.dtype), [])
        if alike:
            merged.append(equality if len(alike) == 1 else _membership(equality.column, alike))
    return merged


def _equality(part: Condition) -> Membership | Comparison | None:
    if isinstance(part, Membership):
        return part
    is_equal = isinstance(part, Comparison) and part.operator is Operator.EQUAL
    return part if isinstance(part, Comparison) and is_equal else None


def _membership(column: Column, parts: Sequence[Membership | Comparison]) -> Membership:
    arrays: list[pa.Array] = []
    singles: list[pa.Scalar] = []
    for part in parts:
        if isinstance(part, Membership):
            arrays.append(part.values)
        else:
            singles.append(part.value)
    if singles:
        arrays.append(pa.array(singles, column.dtype))
    has_null = any(isinstance(part, Membership) and part.has_null for part in parts)
    values = pa.concat_arrays(arrays).unique()
    return Membership(column=column, values=values, has_null=has_null)
