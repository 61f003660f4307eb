"""Arguments of a call by name."""

from __future__ import annotations

from typing import Any


def given(arguments: dict[str, Any], *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return those of a function's `locals()` that are not None, with the names in `kwargs`."""
    every = {**arguments, **arguments.get("kwargs", {})}
    left_out = ("self", "kwargs", *without)
    return {k: v for k, v in every.items() if k not in left_out and v is not None}
