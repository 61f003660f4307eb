"""Lance tables in Spark: sessions, reads with pushdown, writes and a catalog."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lancelake.extras import optional

if TYPE_CHECKING:  # importing the package must not load Spark
    from lancelake.spark.jars import jar
    from lancelake.spark.jvm.proxy import error_of
    from lancelake.spark.lance_table import LanceTable
    from lancelake.spark.planning.path_table import read
    from lancelake.spark.registration.sessions import register, session
    from lancelake.spark.streaming.upserts import merge_batches, upsert_batches
    from lancelake.spark.writing.write_plan import write

_HOMES = {
    "LanceTable": "lancelake.spark.lance_table",
    "error_of": "lancelake.spark.jvm.proxy",
    "jar": "lancelake.spark.jars",
    "merge_batches": "lancelake.spark.streaming.upserts",
    "read": "lancelake.spark.planning.path_table",
    "register": "lancelake.spark.registration.sessions",
    "session": "lancelake.spark.registration.sessions",
    "upsert_batches": "lancelake.spark.streaming.upserts",
    "write": "lancelake.spark.writing.write_plan",
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
