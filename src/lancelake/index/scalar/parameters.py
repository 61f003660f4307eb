"""Validation of index parameters."""

from __future__ import annotations

from collections.abc import Collection

from lancelake.errors import InvalidRequestError
from lancelake.index.kind import Parameters
from lancelake.suggest import suggestion


def ensure_known(kind: str, parameters: Parameters, known: Collection[str]) -> None:
    """Raise for a parameter that a kind does not have."""
    for name in parameters:
        if name not in known:
            advice = suggestion(name, sorted(known), "parameters")
            raise InvalidRequestError(f"{kind} has no parameter {name!r}", action=advice)


def count(kind: str, parameters: Parameters, name: str, default: int) -> int:
    """Return a parameter that is a positive row count."""
    value = parameters.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidRequestError(f"{name} of {kind} must be a positive integer, not {value!r}")
    return value


def probability(kind: str, parameters: Parameters, name: str, default: float) -> float:
    """Return a parameter that is a probability between 0 and 1."""
    value = parameters.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 < value < 1.0:
        raise InvalidRequestError(f"{name} of {kind} must be between 0 and 1, not {value!r}")
    return float(value)
