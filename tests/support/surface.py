"""Public names of a package and their signatures, as JSON.

The text of this module also runs inside an official release: it imports the standard library only.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

Parameter = list[Any]
Surface = dict[str, "list[Parameter] | None"]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def surface(
    root: str,
    *,
    hidden: tuple[str, ...] = (),
    members_once: bool = False,
    owners: tuple[str, ...] = (),
) -> Surface:
    """Return the parameters of every public name of a package; None for what is not called.

    Names are `module:name` and `module:Class.member`; those of `hidden` modules are left out.
    With `members_once`, a class that several modules export has its members in the first only.
    Names that the packages `owners` define count as its own.
    """
    found: Surface = {}
    seen: list[object] = []
    for module in _modules(root, hidden):
        name = module.__name__
        for key in dir(module):
            value = getattr(module, key)
            if _is_public(key) and any(_is_own(value, owner) for owner in (root, *owners)):
                is_repeated = any(value is other for other in seen)
                found[f"{name}:{key}"] = None if is_repeated else parameters(value)
                if inspect.isclass(value) and not is_repeated:
                    found |= _members(f"{name}:{key}", value, (root, *owners))
                if members_once and callable(value):
                    seen.append(value)
    return found


def parameters(value: Any) -> list[Parameter] | None:
    """Return name, kind and default of each parameter."""
    if not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [
        [p.name, p.kind.name, None if p.default is p.empty else _ADDRESS.sub("", repr(p.default))]
        for p in signature.parameters.values()
    ]


def _modules(root: str, hidden: tuple[str, ...]) -> Iterator[ModuleType]:
    package = importlib.import_module(root)
    yield package
    names = [m.name for m in pkgutil.walk_packages(package.__path__, root + ".", lambda _: None)]
    for name in names:
        inner = name.removeprefix(root + ".")
        if inner.split(".")[0].startswith("_") or inner.split(".")[0] in hidden:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield importlib.import_module(name)
        except ImportError:
            continue  # it needs a package that is not installed


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__version__"


def _is_own(value: Any, root: str) -> bool:
    """Whether a package defines a value itself; compiled and plain values count as its own."""
    if inspect.ismodule(value) or isinstance(value, bool):
        return False
    module = getattr(value, "__module__", None)
    if module is None:
        return isinstance(value, int | str) or inspect.isbuiltin(value)
    if inspect.isclass(value) and module == "builtins":
        return value.__name__ not in dir(importlib.import_module("builtins"))
    # Classes compiled into pylance have the module `_lib`.
    return module.split(".")[0] in (root.split(".", maxsplit=1)[0], "builtins", "_lib")


def _members(name: str, owner: type, roots: tuple[str, ...]) -> Surface:
    found: Surface = {}
    if issubclass(owner, BaseException | dict):
        return found
    for key in getattr(owner, "__dataclass_fields__", ()):
        found[f"{name}.{key}"] = None
    for key in dir(owner):
        value = getattr(owner, key, None)
        home = next((cls for cls in owner.__mro__ if key in vars(cls)), object)
        if _is_public(key) and home is not object and any(_is_own(home, r) for r in roots):
            found[f"{name}.{key}"] = None if inspect.isclass(value) else parameters(value)
    return found
