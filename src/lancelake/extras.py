"""Optional packages: imported when they are used, with the command that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from lancelake.errors import MissingPackageError


def optional(module: str, *, extra: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Raises MissingPackageError, which names the extra to install, if the package is missing. Other
    failures of the import are raised as they are.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingPackageError(
            f"{purpose} requires the package {package}, which is not installed",
            action=f'Install it with `pip install "lancelake[{extra}]"`.',
        ) from error
