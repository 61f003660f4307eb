"""Values of the core that faces pass and receive, by subject; each is loaded when it is used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def load_on_use(hub: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that offers what it imports for type checkers.

    A command that counts rows must not load what builds indices.
    """

    def load(name: str) -> Any:
        module = sys.modules[hub]
        source = imported_names(hub).get(name)
        if source is None:
            raise AttributeError(f"module {hub!r} has no attribute {name!r}")
        value = load_name(*source)
        setattr(module, name, value)
        return value

    return load


@cache
def imported_names(hub: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name there of what a module imports for type checkers.

    They are read from the text, as SPEC 1 of Scientific Python reads the names of a stub, so that
    no list repeats the imports. The package may be in an archive, as Spark ships it.
    """
    package, _, name = hub.rpartition(".")
    tree = ast.parse(pkgutil.get_data(package, f"{name}.py") or b"")
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def load_name(module: str, name: str) -> Any:
    """Import a name of a module, or a module of a package."""
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")
