"""Optional packages by name, as in pylance: each is imported when its name is asked for."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = ["datasets", "numpy", "pandas", "polars", "torch"]


class Missing:
    """A package that is not installed: each of its attributes is an error that says so."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        msg = f"{self._package}.{name} requires the package {self._package}, which is not installed"
        raise ModuleNotFoundError(msg, name=self._package)

    def __repr__(self) -> str:
        return f"<package {self._package!r} (not installed)>"


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return Missing(name)


def __dir__() -> list[str]:
    return list(_NAMES)
