"""Parameters of a build, as users give them: names and values checked."""

from __future__ import annotations

from collections.abc import Collection

from lancelake.errors import InvalidRequestError
from lancelake.index.kind import Parameters


def ensure_known(kind: str, parameters: Parameters, known: Collection[str]) -> None:
    """Refuse a parameter that a kind does not have."""
    for name in parameters:
        if name not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise InvalidRequestError(f"{kind} has no parameter {name!r}; {takes}")


def count(kind: str, parameters: Parameters, name: str, default: int) -> int:
    """Return a number of rows, at least one."""
    value = parameters.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidRequestError(f"{name} of {kind} must be a positive integer, not {value!r}")
    return value


def probability(kind: str, parameters: Parameters, name: str, default: float) -> float:
    """Return a probability, neither impossible nor certain."""
    value = parameters.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 < value < 1.0:
        raise InvalidRequestError(f"{name} of {kind} must be between 0 and 1, not {value!r}")
    return float(value)
