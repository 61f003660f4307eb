"""Catalogs of sessions that Spark derives from a registered one.

Each streaming query runs in a clone of its session, which `foreachBatch` receives, and `newSession`
returns a session of its own. Neither has the catalogs of the first session, since Spark can only
instantiate catalogs that are JVM classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lancelake.spark.jvm.gateway import session_id

_MARK = "_lancelake_derived"
_ROOTS: WeakKeyDictionary[SparkContext, dict[str, str]] = WeakKeyDictionary()
"""Root folder of each catalog that was registered in a session of an application."""

_HAVE_CATALOGS: set[str] = set()
"""Ids of the sessions that have the catalogs."""

Attach = Callable[[SparkSession, str, str], None]
"""Adds a catalog to a session, by its name and root."""


def root_of(spark: SparkSession, name: str) -> str | None:
    """Return the root folder of a catalog of this application, None if it has none of this name."""
    return _ROOTS.get(spark.sparkContext, {}).get(name)


def share_catalog(spark: SparkSession, name: str, root: str, attach: Attach) -> None:
    """Add the catalog of a session to every session that Python meets later in its application."""
    _ROOTS.setdefault(spark.sparkContext, {})[name] = root
    _HAVE_CATALOGS.add(session_id(spark))
    original = SparkSession.__init__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def init(self: SparkSession, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _attach_all(self, attach)

    setattr(init, _MARK, True)
    SparkSession.__init__ = init  # type: ignore[method-assign]


def _attach_all(spark: SparkSession, attach: Attach) -> None:
    roots = _ROOTS.get(spark.sparkContext)
    if roots is None or session_id(spark) in _HAVE_CATALOGS:
        return
    for name, root in list(roots.items()):
        attach(spark, name, root)
    _HAVE_CATALOGS.add(session_id(spark))
