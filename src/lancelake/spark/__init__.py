"""Lance tables in Spark: sessions, reads with pushdown, writes and a catalog."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lancelake.extras import optional

if TYPE_CHECKING:  # importing the package must not load Spark
    from lancelake.spark.api.batches import merge_batches, upsert_batches
    from lancelake.spark.api.lance_table import LanceTable
    from lancelake.spark.api.session import register, session
    from lancelake.spark.connector.path_table import read
    from lancelake.spark.jars import jar
    from lancelake.spark.jobs.write_plan import write
    from lancelake.spark.jvm.proxy import error_of

_HOMES = {
    "LanceTable": "lancelake.spark.api.lance_table",
    "error_of": "lancelake.spark.jvm.proxy",
    "jar": "lancelake.spark.jars",
    "merge_batches": "lancelake.spark.api.batches",
    "read": "lancelake.spark.connector.path_table",
    "register": "lancelake.spark.api.session",
    "session": "lancelake.spark.api.session",
    "upsert_batches": "lancelake.spark.api.batches",
    "write": "lancelake.spark.jobs.write_plan",
}

__all__ = [
    "LanceTable",
    "error_of",
    "jar",
    "merge_batches",
    "read",
    "register",
    "session",
    "upsert_batches",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load a name on first use; raise MissingPackageError without PySpark."""
    if name in _HOMES:
        optional("pyspark", extra="spark", purpose="lancelake.spark")
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lancelake.spark' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
