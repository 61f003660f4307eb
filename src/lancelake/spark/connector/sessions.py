"""What the jar asks Python for, session by session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from lancelake.core.values.writes import declare_engine
from lancelake.errors import UnsupportedError
from lancelake.spark.connector.catalog import LanceCatalog, SessionLanceTables
from lancelake.spark.connector.path_table import table_by_path
from lancelake.spark.jars import SESSION_CATALOG
from lancelake.spark.jobs.write_plan import write_options
from lancelake.spark.jvm.gateway import Gateway, open_derived
from lancelake.spark.jvm.proxy import Proxy, implements
from lancelake.spark.jvm.python_tasks import python_schema
from lancelake.spark.sql.procedures import translate
from lancelake.spark.sql.table_names import widen_table
from lancelake.spark.streaming.upserts import BATCH_OPTIONS, batches_into
from lancelake.spark.values.options import parse

_PARTITIONS = "__partition_columns"
"""Option in which Spark passes the columns of `partitionBy`."""

_MODES = {"ErrorIfExists": "error"}


@implements("lancelake.Planner$Sessions")
class Sessions(Proxy):
    """Answers the classes of the jar that Spark's settings name."""

    def answers(self) -> bool:
        """Whether this process is alive: a dead one does not answer."""
        return True

    def catalog(self, session: Any, name: str) -> LanceCatalog:
        """Return a catalog that the settings name, or the Lance tables of the session catalog."""
        gateway = self._attached(session)
        if name == SESSION_CATALOG:
            return SessionLanceTables(gateway)
        return LanceCatalog(gateway, name)

    def translate(self, session: Any, statement: str) -> str | None:
        """Return a statement as one that Spark has; None if it is not ours."""
        return translate(self._attached(session).spark, statement)

    def change(self, session: Any, plan: Any) -> Any:
        """Run a DELETE, UPDATE or MERGE; return the numbers of changed rows."""
        # Not loaded for sessions that only read.
        from lancelake.spark.connector.change import run_row_command  # noqa: PLC0415

        gateway = open_derived(self.gateway, session)
        return gateway.map(run_row_command(gateway, plan))

    def table(self, session: Any, options: Any, schema: Any) -> Any:
        """Return the table that options select; with a schema, one that may not exist."""
        gateway = self._attached(session)
        columns = None if schema is None else python_schema(schema)
        return table_by_path(gateway, dict(options), columns)

    def save(self, session: Any, rows: Any, mode: str, options: Any) -> None:
        """Write rows into the table that options select."""
        gateway = self._attached(session)
        given = dict(options)
        if given.pop(_PARTITIONS, None) is not None:
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit partitionBy.")
        frame = DataFrame(rows, gateway.spark)
        write_options(frame, given, _MODES.get(mode, mode.lower()))

    def addBatch(self, session: Any, rows: Any, number: int, options: Any) -> None:
        """Upsert a batch of a stream."""
        gateway = self._attached(session)
        batches_into(parse(dict(options), BATCH_OPTIONS))(DataFrame(rows, gateway.spark), number)

    def widen(self, session: Any, name: Any, schema: Any) -> bool:
        """Add the columns of rows to a table, if its name is that of one."""
        gateway = self._attached(session)
        return widen_table(gateway.spark, list(name), python_schema(schema))

    def _attached(self, session: Any) -> Gateway:
        """Return the JVM of a session, which has our rules and statements."""
        gateway = open_derived(self.gateway, session)
        gateway.cls("lancelake.LanceExtensions").attach(session)
        return gateway


def answer_jar(gateway: Gateway) -> None:
    """Let this process plan for the sessions of its driver."""

    def answer() -> bool:
        declare_engine(f"Spark {gateway.spark.version}")
        gateway.cls("lancelake.Planner").answerBy(Sessions(gateway))
        return True

    gateway.once("answers for the jar", answer)
