"""What comes with a catalog of Lance tables, and the answers that the jar gets from Python."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.procedures import translate
from lancelake.spark.catalog.table_names import remember
from lancelake.spark.jvm.catalyst_rules import (
    take_optimizer_rules,
    take_row_commands,
    take_statements,
)
from lancelake.spark.jvm.gateway import Gateway, driver_class, open_derived
from lancelake.spark.jvm.proxy import Proxy, implements
from lancelake.spark.jvm.python_tasks import put_source
from lancelake.spark.jvm.session_tables import take_session_catalog
from lancelake.spark.merge.change import run_row_command
from lancelake.spark.options import ROOT
from lancelake.spark.planning.catalog import LanceCatalog, SessionLanceTables
from lancelake.spark.registration.plain_source import LanceDataSource
from lancelake.spark.worker.on_executors import portable_source

CATALOG_CLASS = "lancelake.LanceCatalog"
_PLANNER = "Planner"
_CATALOGS = "spark.sql.catalog."


def default_root(gateway: Gateway, name: str) -> str:
    """Return the root folder that the settings of a session give a catalog."""
    warehouse = gateway.conf("spark.sql.warehouse.dir", "spark-warehouse")
    return gateway.conf(f"{_CATALOGS}{name}.root", gateway.conf(ROOT, warehouse))


def attach_parts(gateway: Gateway, name: str, root: str) -> LanceCatalog:
    """Add the row commands, the statements and the rules of a catalog to a session.

    Returns the catalog that they belong to.
    """
    tables = LanceCatalog(gateway, name, root)
    remember(gateway.spark, name, tables.directory)
    with _warn("UPDATE and MERGE in SQL are not available, use LanceTable"):
        take_row_commands(gateway, functools.partial(run_row_command, gateway))
    with _warn("OPTIMIZE, VACUUM and RESTORE are not available, use CALL"):
        take_statements(gateway, functools.partial(translate, gateway.spark))
    with _warn("Lance tables of the session catalog can only be read and appended to"):
        take_session_catalog(gateway, SessionLanceTables(gateway, root))
    with _warn("joins are not pruned at run time, and some conditions on booleans fail"):
        take_optimizer_rules(gateway)
    return tables


@contextmanager
def _warn(loss: str) -> Iterator[None]:
    """Warn of what a session lacks if it does not accept something of ours."""
    try:
        yield
    except UnsupportedError as error:
        warnings.warn(f"{loss}: {error}", stacklevel=5)


@implements("lancelake.Planner$Sessions")
class Sessions(Proxy):
    """What the jar asks Python for, session by session."""

    def catalog(self, session: Any, name: str) -> LanceCatalog:
        """Return a catalog that the settings name; its session gets what comes with it."""
        gateway = open_derived(self.gateway, session)
        # One that an earlier process registered reports to that process.
        put_source(gateway, LanceDataSource.name(), portable_source(LanceDataSource))
        return attach_parts(gateway, name, default_root(gateway, name))

    def translate(self, session: Any, statement: str) -> str | None:
        """Return a statement as one that Spark has; None if it is not ours."""
        gateway = open_derived(self.gateway, session)
        for key, value in gateway.spark.sparkContext.getConf().getAll():
            name = key.removeprefix(_CATALOGS)
            if value == CATALOG_CLASS and key.startswith(_CATALOGS) and "." not in name:
                # The statement may be the first that names a table of this catalog.
                gateway.session_state().catalogManager().catalog(name)
        return translate(gateway.spark, statement)


def answer_jar(gateway: Gateway) -> None:
    """Let this process plan for the catalogs that the settings of its driver name."""

    def answer() -> bool:
        methods = driver_class(gateway, _PLANNER).getMethods()
        method = next(each for each in methods if each.getName() == "answerBy")
        given = gateway.array(gateway.cls("java.lang.Object"), [Sessions(gateway)])
        method.invoke(None, given)
        return True

    gateway.once("answers for the jar", answer)
