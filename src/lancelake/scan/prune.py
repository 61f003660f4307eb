"""Fragment pruning by conditions on row addresses and row ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from lancelake.expr.condition import (
    And,
    Comparison,
    Condition,
    Constant,
    Membership,
    Operator,
    Or,
    Path,
)

MayHold = Callable[[int], bool]
Places = Mapping[Path, int]
"""Columns whose values include the fragment of a row, and the bits below its id."""


def fragment_test(condition: Condition, places: Places) -> MayHold | None:
    """Return a test whether a condition can be true in a fragment; None if it is always true."""
    match condition:
        case Constant():
            return None if condition.truth else lambda _: False
        case And():
            tests = [t for p in condition.parts if (t := fragment_test(p, places)) is not None]
            return (lambda i: all(test(i) for test in tests)) if tests else None
        case Or():
            found = [fragment_test(part, places) for part in condition.parts]
            either = [test for test in found if test is not None]
            if len(either) < len(found):
                return None
            return lambda i: any(test(i) for test in either)
        case Comparison():
            return _comparison(condition, places)
        case Membership():
            bits = places.get(condition.column.path)
            if bits is None:
                return None
            ids = {value >> bits for value in condition.values.to_pylist()}
            return lambda i: i in ids
        case _:
            return None


def _comparison(condition: Comparison, places: Places) -> MayHold | None:
    bits = places.get(condition.column.path)
    if bits is None:
        return None
    number = condition.value.as_py() >> bits
    match condition.operator:
        case Operator.EQUAL:
            return lambda i: i == number
        case Operator.LESS | Operator.LESS_EQUAL:
            return lambda i: i <= number
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return lambda i: i >= number
        case Operator.NOT_EQUAL:
            return None
        case _:
            assert_never(condition.operator)
