"""A Spark session that knows Lance tables: a new one, or one that is there."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from lancelake.errors import UnsupportedError
from lancelake.spark.java import ensure_java
from lancelake.spark.jvm.door import is_classic, open_door
from lancelake.spark.source import LanceDataSource

if TYPE_CHECKING:
    from lancelake.spark.planning.catalog import LanceCatalog

_ROOT = "spark.lancelake.root"
# Arrow checks every access to every value, which costs a sixth of a scan.
_ARROW_UNCHECKED = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
_DEFAULTS = {
    # Tables of a warehouse are not Hive's.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark queues columns for Python functions without a bound, and rows within one.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.python.daemon.module": "lancelake.spark.daemon",
    # Over TCP, a small answer of a worker waits 40 ms for an acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.defaultJavaOptions": _ARROW_UNCHECKED,
    "spark.executor.defaultJavaOptions": _ARROW_UNCHECKED,
}


def session(master: str = "local[*]", *, root: str | None = None, **conf: object) -> SparkSession:
    """Return a session with the data source `lance` and the catalog `lance`.

    Settings are given with underscores for dots: `spark_sql_shuffle_partitions=4`; or as
    `**{"spark.sql.shuffle.partitions": 4}`. `root` is the folder of the catalog's tables.
    """
    ensure_java()
    _same_interpreter()
    builder = SparkSession.builder.master(master).appName("lancelake")
    settings = {**_DEFAULTS, **{_key(name): value for name, value in conf.items()}}
    for key, value in settings.items():
        builder = builder.config(key, _text(value))
    with warnings.catch_warnings():
        # The codec warns of forks; this one becomes Java at once.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        spark = builder.getOrCreate()
    register(spark, root=root)
    return spark


def register(spark: SparkSession, catalog: str = "lance", root: str | None = None) -> SparkSession:
    """Teach a session about Lance tables; on Spark Connect, only the plain data source.

    `root` is the folder of the catalog's tables; without it, `spark.lancelake.root`, or else the
    session's warehouse folder. Registering again changes the root.
    """
    spark.dataSource.register(LanceDataSource)
    if not is_classic(spark):
        return spark
    try:
        _catalog(spark, catalog, root)
    except UnsupportedError as error:
        text = f"Lance tables are read without pushdown and without a catalog: {error}"
        warnings.warn(text, stacklevel=2)
    return spark


def _catalog(spark: SparkSession, name: str, root: str | None) -> LanceCatalog:
    from lancelake.spark.jvm.reader_hook import read_by_planning  # noqa: PLC0415
    from lancelake.spark.jvm.relation import put_catalog  # noqa: PLC0415
    from lancelake.spark.jvm.row_commands import take_row_commands  # noqa: PLC0415
    from lancelake.spark.jvm.stream_hook import stream_by_name  # noqa: PLC0415
    from lancelake.spark.jvm.writer_hook import write_by_planning  # noqa: PLC0415
    from lancelake.spark.named import remember  # noqa: PLC0415
    from lancelake.spark.planning.catalog import LanceCatalog  # noqa: PLC0415  # needs a classic session
    from lancelake.spark.row_commands import run_row_command  # noqa: PLC0415

    door = open_door(spark)
    warehouse = door.conf("spark.sql.warehouse.dir", "spark-warehouse")
    place = root or door.conf(_ROOT, warehouse)
    found = LanceCatalog(door, name, place)
    put_catalog(door, name, found)
    remember(spark, name, found)
    read_by_planning(spark)
    stream_by_name(spark)
    write_by_planning(spark)
    try:
        take_row_commands(door, functools.partial(run_row_command, door))
    except UnsupportedError as error:
        text = f"UPDATE and MERGE of SQL do not work, LanceTable does: {error}"
        warnings.warn(text, stacklevel=3)
    return found


def _same_interpreter() -> None:
    """Let workers run in this interpreter, which has this package, unless someone chose another."""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)


def _key(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
