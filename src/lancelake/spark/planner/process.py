"""The process that plans for drivers without a Python program: SQL shells, JDBC, Connect, Scala.

The jar starts it with the port and the secret of a gateway, as spark-submit starts a program. It
ends when the driver closes its standard input.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lancelake.errors import LanceTableError, UnsupportedError
from lancelake.spark.connector.sessions import answer_jar
from lancelake.spark.jvm.gateway import open_gateway
from lancelake.version import __version__


def attach_driver() -> SparkContext:
    """Return the context of the driver that has started this process."""
    SparkContext._ensure_initialized()
    gateway, jvm = SparkContext._gateway, SparkContext._jvm
    if gateway is None or jvm is None:
        raise UnsupportedError("this process was not started by a driver")
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jconf=java.getConf())
    python = conf.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", sys.executable))
    os.environ["PYSPARK_PYTHON"] = str(python)
    return SparkContext(jsc=java, gateway=gateway, conf=conf)


def ensure_same_release(release: str) -> None:
    """Refuse a jar of another release, whose classes may ask for something else."""
    if release != __version__:
        problem = f"the jar is of lancelake {release}, but the Python package is {__version__}"
        action = "Use the jar of the package: `lancelake spark-conf` names it."
        raise UnsupportedError(problem, action=action)


REFUSED = 78
"""Exit code of a process that refuses its driver. Its last line is all that the driver says."""


def main() -> None:
    """Plan until the driver ends, or refuse to."""
    try:
        _plan()
    except LanceTableError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(REFUSED)


def _plan() -> None:
    context = attach_driver()
    java: Any = context._jvm
    ensure_same_release(str(java.lancelake.Planner.release()))
    session = SparkSession(context, java.org.apache.spark.sql.classic.SparkSession.active())
    answer_jar(open_gateway(session))
    sys.stdin.read()


if __name__ == "__main__":
    main()
