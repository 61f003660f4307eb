"""Lance tables in Python: read and write them on local disk and object stores."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lancelake import upkeep
from lancelake.errors import LanceTableError
from lancelake.version import __version__

if TYPE_CHECKING:  # the command line must start without loading the engines behind the face
    from lancelake.pylance import (
        ColumnOrdering,
        FragmentMetadata,
        LanceDataset,
        LanceFragment,
        LanceOperation,
        LanceScanner,
        Session,
        Transaction,
        batch_udf,
        write_dataset,
    )
    from lancelake.pylance._open import convert, dataset

__all__ = [
    "ColumnOrdering",
    "FragmentMetadata",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceTableError",
    "Session",
    "Transaction",
    "__version__",
    "batch_udf",
    "convert",
    "dataset",
    "write_dataset",
]


upkeep.install()


def __getattr__(name: str) -> Any:
    """Load the face when one of its names is first used."""
    if name in __all__:
        return getattr(importlib.import_module("lancelake.pylance"), name)
    raise AttributeError(f"module 'lancelake' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
