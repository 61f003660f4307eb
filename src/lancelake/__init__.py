"""Lance tables in Python: open, inspect and read them on local disk and object stores."""

from __future__ import annotations

from lancelake.errors import LanceTableError
from lancelake.pylance import (
    ColumnOrdering,
    FragmentMetadata,
    LanceDataset,
    LanceFragment,
    LanceOperation,
    LanceScanner,
    Transaction,
    dataset,
)

__version__ = "0.1.0"

__all__ = [
    "ColumnOrdering",
    "FragmentMetadata",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceTableError",
    "Transaction",
    "__version__",
    "dataset",
]
