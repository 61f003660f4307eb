"""Table that SQL can change: the newest version of a table or branch."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.expr.condition import Condition
from lancelake.expr.predicate import Predicate, joined
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import implements
from lancelake.spark.options.table_options import TableOptions
from lancelake.spark.options.table_properties import shown_properties
from lancelake.spark.planning.constraints import java_clustering, java_constraints
from lancelake.spark.planning.write import LanceWriteBuilder
from lancelake.spark.reading.column_types import column_types
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.writing.write_plan import existing
from lancelake.table.compact.clustering import cluster_paths
from lancelake.table.rows.delete import delete

_CAPABILITIES = (
    "AUTOMATIC_SCHEMA_EVOLUTION",
    "BATCH_READ",
    "BATCH_WRITE",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
    "TRUNCATE",
)


@implements(
    "catalog.SupportsRead",
    "catalog.SupportsMetadataColumns",
    "catalog.SupportsWrite",
    "catalog.SupportsDeleteV2",
)
class WritableTable(VersionTable):
    """Reads the version that was newest when it was loaded; writes are applied to the newest."""

    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, *, is_external: bool = False
    ) -> None:
        super().__init__(gateway, snapshot, name)
        self._is_external = is_external
        branch = snapshot.branch
        rest = {} if branch is None else {"branch": branch}
        self.options = TableOptions(location=snapshot.main_location, rest=rest)

    def properties(self) -> Any:
        kind = {"external": "true"} if self._is_external else {"is_managed_location": "true"}
        return self.gateway.map({**shown_properties(self.snapshot), **kind})

    def constraints(self) -> Any:
        return java_constraints(self.gateway, self.snapshot.manifest.schema)

    def partitioning(self) -> Any:
        return java_clustering(self.gateway, cluster_paths(self.snapshot.manifest.config))

    def capabilities(self) -> Any:
        known = self.gateway.connector("catalog.TableCapability").values()
        return self.gateway.set([can for can in known if can.name() in _CAPABILITIES])

    def newWriteBuilder(self, info: Any) -> Any:
        return LanceWriteBuilder(self.gateway, self.options, info, self._java_expressions())

    def canDeleteWhere(self, predicates: Any) -> bool:
        return all(condition is not None for condition in self._conditions(predicates))

    def deleteWhere(self, predicates: Any, *options: Any) -> None:  # noqa: ARG002
        found = self._conditions(predicates)
        known = [condition for condition in found if condition is not None]
        if len(known) < len(found):
            raise UnsupportedError("this condition is not supported for deleting rows")
        self._delete(joined(known))

    def truncateTable(self, *options: Any) -> bool:  # noqa: ARG002
        self._delete(None)
        return True

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def reportDriverMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomTaskMetric"), [])

    def newest(self) -> Snapshot:
        """Open the newest version."""
        return existing(self.options) or self.snapshot

    def condition(self, predicate: Any) -> Predicate | None:
        """Return a Spark predicate as one of ours; None if that might change its meaning."""
        found = None if predicate is None else self._conditions([predicate])[0]
        return None if found is None else joined([found])

    def _delete(self, condition: Predicate | None) -> None:
        engine = SparkEngine(self.gateway.spark)
        delete(self.newest(), condition, engine=engine, commits_nothing=False)

    def _conditions(self, predicates: Any) -> list[Condition | None]:
        expressions = self._java_expressions()
        return [expressions.condition(predicate) for predicate in predicates]

    def _java_expressions(self) -> JavaExpressions:
        return JavaExpressions(self.gateway, column_types(self.snapshot.manifest.schema))
