"""Print the settings of Spark for Lance tables."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from lancelake.cli.console import stdout
from lancelake.cli.options import CommandModule, flag
from lancelake.errors import InvalidRequestError

commands = CommandModule()


class Form(Enum):
    """How the settings are written."""

    DEFAULTS = "defaults"
    SUBMIT = "submit"


@commands.add(example="--root s3://bucket/tables")
def spark_conf(
    root: Annotated[
        str | None, typer.Option("--root", metavar="URI", help="Folder of the catalog's tables.")
    ] = None,
    catalog: Annotated[
        str, typer.Option("--catalog", metavar="NAME", help="Name of the catalog.")
    ] = "lance",
    form: Annotated[
        Form,
        typer.Option(
            "--as", help="Lines of spark-defaults.conf, or options of spark-submit and spark-sql."
        ),
    ] = Form.DEFAULTS,
    install: Annotated[
        bool, flag("--install", "Copy the jar into $SPARK_HOME/jars, so that no setting names it.")
    ] = False,
) -> None:
    """Print the settings of Spark for Lance tables.

    They serve spark-sql, spark-shell, spark-submit, Thrift servers and Spark Connect servers. A
    Python process plans the tables; the driver starts it with this interpreter.
    """
    # The jar is part of the Spark face, whose other modules need PySpark.
    from lancelake.spark.jars import jar  # noqa: PLC0415

    settings = {
        "spark.jars": str(jar()),
        "spark.sql.extensions": "lancelake.LanceExtensions",
        f"spark.sql.catalog.{catalog}": "lancelake.LanceCatalog",
        "spark.lancelake.python": sys.executable,
    }
    if root is not None:
        settings[f"spark.sql.catalog.{catalog}.root"] = root
    if install:
        shutil.copy(jar(), _jars_of_spark())
        del settings["spark.jars"]
    if form is Form.SUBMIT:
        parts = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()]
        lines = [" ".join(parts)]
    else:
        width = max(map(len, settings))
        lines = [f"{key:{width}}  {value}" for key, value in settings.items()]
    for line in lines:
        stdout().print(line, soft_wrap=True, highlight=False, markup=False)


def _jars_of_spark() -> Path:
    home = os.environ.get("SPARK_HOME")
    if not home:
        action = "Set it to the folder of Spark, or leave --install out."
        raise InvalidRequestError("SPARK_HOME is not set", action=action)
    jars = Path(home) / "jars"
    if not jars.is_dir():
        raise InvalidRequestError(f"SPARK_HOME is {home}, but it has no folder jars")
    return jars
