"""Print the settings of Spark for Lance tables."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, assert_never

import typer

from lancelake.cli.console import stdout
from lancelake.cli.options import CommandModule, flag
from lancelake.errors import InvalidRequestError
from lancelake.version import __version__

commands = CommandModule()


class Form(Enum):
    """How the settings are written."""

    DEFAULTS = "defaults"
    SUBMIT = "submit"
    DATABRICKS = "databricks"
    EMR = "emr"


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
            "--as",
            help="Lines of spark-defaults.conf, options of spark-submit and spark-sql, an init "
            "script and the settings of a Databricks cluster, or the configuration of EMR.",
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
    from lancelake.spark.jars import CATALOGS, DRIVER_CLASS_PATH, JARS, connector_settings, jar  # noqa: PLC0415

    # The threads of some servers do not see the jars that are added to a running driver.
    settings = {**connector_settings(catalog), DRIVER_CLASS_PATH: str(jar())}
    if form is not Form.DATABRICKS:
        settings["spark.lancelake.python"] = sys.executable
    if root is not None:
        settings[f"{CATALOGS}{catalog}.root"] = root
    if install:
        shutil.copy(jar(), _jars_of_spark())
    if install or form is Form.DATABRICKS:
        del settings[JARS], settings[DRIVER_CLASS_PATH]
    for line in _lines(settings, form):
        stdout().print(line, soft_wrap=True, highlight=False, markup=False)


def _lines(settings: dict[str, str], form: Form) -> list[str]:
    match form:
        case Form.DEFAULTS:
            width = max(map(len, settings))
            return [f"{key:{width}}  {value}" for key, value in settings.items()]
        case Form.SUBMIT:
            parts = (f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
            return [" ".join(parts)]
        case Form.EMR:
            document = [{"Classification": "spark-defaults", "Properties": settings}]
            return [json.dumps(document, indent=2)]
        case Form.DATABRICKS:
            # Every machine of a cluster runs the script before Spark starts.
            return [
                "# Init script of the cluster (dedicated access mode):",
                f"/databricks/python/bin/pip install lancelake=={__version__}",
                "/databricks/python/bin/python -c 'from lancelake.spark.jars import jar; "
                'import shutil; shutil.copy(jar(), "/databricks/jars")\'',
                "# Spark config of the cluster:",
                *(f"{key} {value}" for key, value in settings.items()),
                "spark.lancelake.python /databricks/python/bin/python",
            ]
        case _:
            assert_never(form)


def _jars_of_spark() -> Path:
    home = os.environ.get("SPARK_HOME")
    if not home:
        action = "Set it to the folder of Spark, or leave --install out."
        raise InvalidRequestError("SPARK_HOME is not set", action=action)
    jars = Path(home) / "jars"
    if not jars.is_dir():
        raise InvalidRequestError(f"SPARK_HOME is {home}, but it has no folder jars")
    return jars
