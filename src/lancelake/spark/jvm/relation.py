"""A table that Python implements -> a DataFrame, or a catalog of the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from lancelake.spark.jvm.gateway import Door, guarded

_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
_DATASET = "org.apache.spark.sql.classic.Dataset"


def relation_over(door: Door, table: Any, given: Mapping[str, str] | None = None) -> Any:
    """Return a table as a plan; its scans get the options given."""
    none = door.none()
    options = door.options(given or {})
    create = door.member(_RELATION, "create")
    return guarded(door, lambda: create(table, none, none, options, none), "relation over a table")


def data_frame(door: Door, table: Any, given: Mapping[str, str] | None = None) -> DataFrame:
    """Return the rows of a table as a DataFrame; the table's scans get the options given."""

    def build() -> Any:
        relation = relation_over(door, table, given)
        return door.member(_DATASET, "ofRows")(door.spark._jsparkSession, relation)

    return DataFrame(guarded(door, build, "relation over a table"), door.spark)


def put_catalog(door: Door, name: str, catalog: Any) -> None:
    """Make a catalog known to the session under a name."""

    def put() -> None:
        manager = door.session_state().catalogManager()
        field = manager.getClass().getDeclaredField("catalogs")
        field.setAccessible(True)
        field.get(manager).put(name, catalog)

    guarded(door, put, "place for catalogs")
