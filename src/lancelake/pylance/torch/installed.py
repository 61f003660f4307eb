"""Import of PyTorch, which is optional."""

from __future__ import annotations

import importlib
from typing import Any


def torch() -> Any:
    """Return the module `torch`."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        problem = "PyTorch is not installed; install torch to read tables as tensors"
        raise ModuleNotFoundError(problem, name="torch") from error


def base_class(name: str) -> Any:
    """Return a class of `torch.utils.data` to derive from; `object` without PyTorch.

    Constructors must call `torch`, which raises the error then.
    """
    try:
        return getattr(importlib.import_module("torch.utils.data"), name)
    except ModuleNotFoundError:
        return object
