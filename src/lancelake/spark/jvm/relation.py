"""Tables implemented in Python as DataFrames and session catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from lancelake.spark.jvm.gateway import Gateway, guarded
from lancelake.spark.jvm.plan_calls import remembered

_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
_DATASET = "org.apache.spark.sql.classic.Dataset"


def relation_over(gateway: Gateway, table: Any, given: Mapping[str, str] | None = None) -> Any:
    """Return a table as a plan; the options are passed to its scans."""
    none = gateway.none()
    options = gateway.options(given or {})
    create = gateway.member(_RELATION, "create")
    return guarded(
        gateway,
        lambda: create(remembered(gateway, table), none, none, options, none),
        "relation over a table",
    )


def data_frame(gateway: Gateway, table: Any, given: Mapping[str, str] | None = None) -> DataFrame:
    """Return the rows of a table as a DataFrame; the options are passed to its scans."""

    def build() -> Any:
        relation = relation_over(gateway, table, given)
        return gateway.member(_DATASET, "ofRows")(gateway.spark._jsparkSession, relation)

    return DataFrame(guarded(gateway, build, "relation over a table"), gateway.spark)


def put_catalog(gateway: Gateway, name: str, catalog: Any) -> None:
    """Register a catalog in the session under a name."""

    def put() -> None:
        manager = gateway.session_state().catalogManager()
        field = manager.getClass().getDeclaredField("catalogs")
        field.setAccessible(True)
        field.get(manager).put(name, remembered(gateway, catalog))

    guarded(gateway, put, "catalog registry")
