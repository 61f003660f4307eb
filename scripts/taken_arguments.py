"""Arguments of methods that take those of another one, and their descriptions, for the site.

mkdocstrings reads the code without running it, and decorators such as `takes` complete signatures
and docstrings when it runs: this extension of griffe shows what they made.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe

COMPLETED = ("describes_as", "takes")
KINDS = {kind.name.lower(): kind for kind in griffe.ParameterKind}


class TakenArguments(griffe.Extension):
    """Replaces the arguments and the docstring of decorated methods by those at run time."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Complete a method."""
        names = {str(each.value).partition("(")[0] for each in func.decorators}
        if names.isdisjoint(COMPLETED) or func.docstring is None:
            return
        found: Any = importlib.import_module(func.module.path)
        for name in func.path.removeprefix(f"{func.module.path}.").split("."):
            found = getattr(found, name)
        func.docstring.value = inspect.getdoc(found) or ""
        func.parameters = griffe.Parameters(*map(_parameter, _parameters(found)))


def _parameters(call: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(call).parameters.values())


def _parameter(each: inspect.Parameter) -> griffe.Parameter:
    kind = KINDS[each.kind.name.lower()]
    default = None if each.default is each.empty else repr(each.default)
    annotation = None if each.annotation is each.empty else str(each.annotation)
    return griffe.Parameter(each.name, annotation=annotation, kind=kind, default=default)
