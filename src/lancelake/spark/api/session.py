"""Sessions with Lance tables."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Container, Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lancelake.core.values.writes import declare_engine
from lancelake.errors import UnsupportedError
from lancelake.spark.connector.plain_source import LanceDataSource
from lancelake.spark.jars import (
    CATALOG_CLASS,
    CATALOGS,
    EXTENSIONS,
    JARS,
    SESSION_CATALOG,
    SESSION_CLASS,
    connector_settings,
)
from lancelake.spark.jvm.gateway import Gateway, is_classic, open_gateway, put_on_driver
from lancelake.spark.tasks.on_executors import portable_source
from lancelake.spark.values.options import ROOT, as_texts

# Arrow checks every access to every value, which takes a sixth of a scan.
_ARROW_UNCHECKED = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
_DAEMON = {"spark.python.daemon.module": "lancelake.spark.tasks.daemon"}
_JAVA = "spark.driver.defaultJavaOptions"
_JAVA_HINT = (
    "Install Java 17 or newer, for example `apt install openjdk-17-jre-headless` or `brew "
    "install openjdk@17`, or set JAVA_HOME."
)
_MASTER, _NAME = "spark.master", "spark.app.name"
_NO_NAME = "pyspark-shell"
"""Default application name of Spark's launcher."""

_SECRETS = (
    "(?i)secret|password|passphrase|token|credential|(access|account|customer|master|sas).?key"
)
"""Names of settings that Spark does not show; for Java and Python."""

_PASSWORD = re.compile(r"://[^/@\s]*:[^@\s]*@")

_LAUNCHED: dict[int, dict[str, str]] = {}
"""Settings of the launcher when Java was started, by gateway."""

_SESSION_CATALOG, _BUILT_IN = f"{CATALOGS}{SESSION_CATALOG}", "builtin"
_CONNECTOR = connector_settings()
_LISTS = (JARS, EXTENSIONS)
"""Settings in which other members may stand, too."""

_DEFAULTS = {
    **{key: value for key, value in _CONNECTOR.items() if key not in _LISTS},
    # Tables of a warehouse do not belong to Hive.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark queues columns for Python functions without a limit, and rows within one.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # Over TCP, a small reply of a worker is delayed by 40 ms for an acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.redaction.regex": _SECRETS,
    _JAVA: _ARROW_UNCHECKED,
    "spark.executor.defaultJavaOptions": _ARROW_UNCHECKED,
}


def session(master: str | None = None, *, root: str | None = None, **conf: object) -> SparkSession:
    """Return a session with the data source `lance` and the catalog `lance`.

    Other settings are those of the launcher: spark-submit, PYSPARK_SUBMIT_ARGS, or
    spark-defaults.conf. Without a master there, the session runs on `local[*]`.

    Args:
        master: The master, such as `local[4]`.
        root: Folder of the catalog's tables; by default as in `register`.
        **conf: Settings, with underscores for dots: `spark_sql_shuffle_partitions=4`; or as
            `**{"spark.sql.shuffle.partitions": 4}`.

    Returns:
        A new session, or the running one with these settings.

    Raises:
        UnsupportedError: There is no Java that Spark can run on.

    Examples:
        >>> from lancelake.spark import session
        >>> spark = session()
        >>> spark.read.format("lance").load(path).count()
        3
    """
    ensure_java()
    given = as_texts({_key(name): value for name, value in conf.items()})
    given |= {} if master is None else {_MASTER: master}
    with warnings.catch_warnings():
        # The codec warns about forks; this one immediately executes Java.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        launched = _launch(given)
        place = given.get(_MASTER) or launched.get(_MASTER, "local")
        if place.startswith("local"):
            _same_interpreter()
        has_package = _workers_have_package(place, {**launched, **given})
        builder = SparkSession.builder
        for key, value in settings(given, launched, has_package=has_package).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    register(spark, root=root or given.get(ROOT))
    return spark


def settings(
    given: Mapping[str, str], launched: Mapping[str, str], *, has_package: bool
) -> dict[str, str]:
    """Return the settings of a session: given ones, then the launcher's, then our defaults.

    `has_package` states whether every Python worker can import this package: no worker would start
    if the daemon could not.
    """
    name = launched.get(_NAME, _NO_NAME)
    ours = {**_DEFAULTS, _MASTER: "local[*]", **(_DAEMON if has_package else {})}
    from_launcher = {key: value for key, value in launched.items() if key in ours}
    chosen = {**ours, _NAME: "lancelake" if name == _NO_NAME else name, **from_launcher, **given}
    return chosen | _with_ours({**launched, **given})


def _with_ours(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are lists, with our members."""
    lists: dict[str, str] = {}
    for key in _LISTS:
        ours = _CONNECTOR[key]
        members = [member for member in given.get(key, "").split(",") if member]
        lists[key] = ",".join(members if ours in members else [*members, ours])
    return lists


def register(spark: SparkSession, catalog: str = "lance", root: str | None = None) -> SparkSession:
    """Add Lance tables to a session that was started without the settings of `spark-conf`.

    On Spark Connect this adds the plain data source: catalogs are settings of the server.
    Registering again with another root changes it.

    Args:
        spark: The session.
        catalog: Name of the catalog.
        root: Folder of the catalog's tables; by default the one that the catalog has already, or
            else `spark.lancelake.root`, or else the session's warehouse folder.

    Returns:
        The session.

    Examples:
        >>> from lancelake.spark import register
        >>> spark = register(spark, root=folder)
        >>> spark.sql("SHOW CATALOGS LIKE 'lance'").count()
        1
    """
    declare_engine(f"Spark {spark.version}")
    if not is_classic(spark):
        spark.dataSource.register(portable_source(LanceDataSource))
        return spark
    from lancelake.spark.connector.sessions import answer_jar  # noqa: PLC0415

    gateway = open_gateway(spark)
    answer_jar(gateway)
    _configure(gateway, catalog, root)
    # Its problems are reported here, and SHOW CATALOGS lists only what was loaded.
    gateway.session_state().catalogManager().catalog(catalog)
    return spark


def _configure(gateway: Gateway, catalog: str, root: str | None) -> None:
    """Set the catalogs of this session, and of those derived from it."""
    name = f"{CATALOGS}{catalog}"
    wanted = {name: CATALOG_CLASS} | ({} if root is None else {f"{name}.root": root})
    if gateway.conf(_SESSION_CATALOG, _BUILT_IN) == _BUILT_IN:
        wanted[_SESSION_CATALOG] = SESSION_CLASS
    new = {key: value for key, value in wanted.items() if gateway.conf(key, "") != value}
    if not new:
        return
    of_application = gateway.spark._jsparkSession.sparkContext().conf()
    for key, value in new.items():
        gateway.spark.conf.set(key, value)
        of_application.set(key, value)
    gateway.cls("lancelake.LanceExtensions").forget(gateway.spark._jsparkSession, catalog)


def _launch(given: Mapping[str, str]) -> dict[str, str]:
    """Start Java unless it is running, and return the settings of its launcher.

    Some settings, such as Java options of the driver, only take effect at its start.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    is_running = is_submitted or SparkContext._gateway is not None
    if not is_submitted:
        # Java takes the interpreter from its environment. That of a submitted program is already
        # set.
        _same_interpreter()
    start = {} if is_running else {_JAVA: _ARROW_UNCHECKED, **public_settings(given)}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*start.items()]))
    put_on_driver(SparkContext._jvm)
    gateway = id(SparkContext._gateway)
    if gateway not in _LAUNCHED:
        every = SparkConf().getAll()
        _LAUNCHED[gateway] = {key: value for key, value in every if key not in start}
    return _LAUNCHED[gateway]


def public_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without secrets: every user of the machine sees Java's command line."""
    return {
        key: value
        for key, value in given.items()
        if not re.search(_SECRETS, key)
        # Packages are only downloaded at the start.
        and (key.startswith("spark.jars") or not _PASSWORD.search(value))
    }


def _same_interpreter() -> None:
    """Let workers run in this interpreter, which has this package, unless another one is set."""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)


def _workers_have_package(master: str, names: Container[str]) -> bool:
    """Whether workers run on this machine, in this interpreter."""
    is_chosen = "spark.pyspark.python" in names
    is_ours = os.environ.get("PYSPARK_PYTHON") == sys.executable and not is_chosen
    return is_ours and master.startswith("local")


def _key(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def ensure_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raise an error if Java is not found where Spark searches for it."""
    home = environment.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise UnsupportedError(
                f"JAVA_HOME is {home}, but it has no bin/java", action=_JAVA_HINT
            )
        return
    if shutil.which("java", path=environment.get("PATH")) is None:
        raise UnsupportedError("Spark needs Java, but Java was not found", action=_JAVA_HINT)
