"""Start a project for spark-pipelines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import stdout
from lancelake.cli.options import CommandModule, argument
from lancelake.errors import InvalidRequestError

commands = CommandModule("Start a project for spark-pipelines.", example="init shop")

_CATALOG, _DATABASE = "lance", "db"
_SPEC = """\
name: {name}
# Checkpoints of streaming tables.
storage: {storage}
catalog: {catalog}
database: {database}
libraries:
  - glob:
      include: transformations/**
"""
_PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def orders() -> DataFrame:
    return spark.range(100).selectExpr("id", "id % 7 AS customer", "id * 1.5 AS amount")
"""
_SQL = """\
CREATE MATERIALIZED VIEW totals AS
SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer;
"""


@commands.add("init", example="shop")
def init_command(
    name: Annotated[str, argument("NAME", "Folder of the project, which must not exist.")],
) -> None:
    """Write a project: settings, specification and examples.

    The settings name the jar and the interpreter of this installation.
    """
    project = Path(name).resolve()
    if project.exists():
        raise InvalidRequestError(f"{project} exists already", action="Choose another name.")
    tables = project / "tables"
    # Spark requires that the database exists.
    (tables / _DATABASE).mkdir(parents=True)
    files = {
        "spark-pipeline.yml": _SPEC.format(
            name=json.dumps(project.name),
            storage=(project / "storage").as_uri(),
            catalog=_CATALOG,
            database=_DATABASE,
        ),
        "conf/spark-defaults.conf": _defaults(tables),
        "transformations/orders.py": _PYTHON,
        "transformations/totals.sql": _SQL,
    }
    for path, content in files.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    stdout().print(Text(f"Wrote {phrases.printable(name)}. To run it:"))
    stdout().print(Text(f"  cd {phrases.printable(name)}"))
    stdout().print(Text("  SPARK_CONF_DIR=conf spark-pipelines run"))


def _defaults(tables: Path) -> str:
    """Return the settings of the server that spark-pipelines starts."""
    # The jar is part of the Spark face, whose other modules need PySpark.
    from lancelake.spark.jars import CATALOGS, JARS, connector_settings  # noqa: PLC0415

    settings = connector_settings(_CATALOG)
    # That server does not load spark.jars.
    jar = settings.pop(JARS)
    settings |= {
        f"{CATALOGS}{_CATALOG}.root": str(tables),
        "spark.driver.extraClassPath": jar,
        "spark.executor.extraClassPath": jar,
        "spark.lancelake.python": sys.executable,
    }
    width = max(map(len, settings))
    return "".join(f"{key:{width}}  {value}\n" for key, value in settings.items())
