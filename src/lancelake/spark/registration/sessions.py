"""Registration of Lance tables in a session.

Each streaming query runs in a clone of its session, which `foreachBatch` receives, and `newSession`
returns a session of its own. Neither has the catalogs of the first session, since Spark can only
instantiate catalogs that are JVM classes.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lancelake.core.values.writes import declare_engine
from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.gateway import (
    Gateway,
    are_compiled,
    is_classic,
    open_gateway,
    open_weakly,
    session_id,
)
from lancelake.spark.options import ROOT, as_texts
from lancelake.spark.registration.plain_source import LanceDataSource
from lancelake.spark.worker.on_executors import portable_source

# Arrow checks every access to every value, which takes a sixth of a scan.
_ARROW_UNCHECKED = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
_DAEMON = {"spark.python.daemon.module": "lancelake.spark.worker.daemon"}
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

_DEFAULTS = {
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
    return {**ours, _NAME: "lancelake" if name == _NO_NAME else name, **from_launcher, **given}


def register(spark: SparkSession, catalog: str = "lance", root: str | None = None) -> SparkSession:
    """Register Lance tables in a session; on Spark Connect, only the plain data source.

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
    try:
        _share(spark, catalog, root)
    except UnsupportedError as error:
        spark.dataSource.register(portable_source(LanceDataSource))
        text = f"Lance tables are read without pushdown and without a catalog: {error}"
        warnings.warn(text, stacklevel=2)
    return spark


def _share(spark: SparkSession, name: str, root: str | None) -> None:
    """Add the catalog to a session and to those that Spark derives from it."""
    from lancelake.spark.planning.catalog import remember_session_tables  # noqa: PLC0415
    from lancelake.spark.registration.attached import answer_jar, default_root  # noqa: PLC0415

    gateway = open_gateway(spark)
    if are_compiled(gateway):
        answer_jar(gateway)
    place = root or root_of(spark, name) or default_root(gateway, name)
    _attach(gateway, name, place)
    remember_session_tables(gateway, place)
    share_catalog(spark, name, place, lambda derived, *of: _attach(open_weakly(derived), *of))


def _attach(gateway: Gateway, name: str, root: str) -> None:
    """Add a catalog, and what comes with it, to a session."""
    from lancelake.spark.jvm.python_tasks import ensure_source  # noqa: PLC0415
    from lancelake.spark.jvm.session_tables import put_catalog  # noqa: PLC0415
    from lancelake.spark.registration import hooks  # noqa: PLC0415
    from lancelake.spark.registration.attached import attach_parts  # noqa: PLC0415

    ensure_source(gateway, LanceDataSource.name(), portable_source(LanceDataSource))
    put_catalog(gateway, name, attach_parts(gateway, name, root))
    hooks.install(gateway.spark)


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


_MARK = "_lancelake_derived"
_ROOTS: WeakKeyDictionary[SparkContext, dict[str, str]] = WeakKeyDictionary()
"""Root folder of each catalog that was registered in a session of an application."""

_HAVE_CATALOGS: set[str] = set()
"""Ids of the sessions that have the catalogs."""

Attach = Callable[[SparkSession, str, str], None]
"""Adds a catalog to a session, by its name and root."""


def root_of(spark: SparkSession, name: str) -> str | None:
    """Return the root folder of a catalog of this application, None if it has none of this name."""
    return _ROOTS.get(spark.sparkContext, {}).get(name)


def share_catalog(spark: SparkSession, name: str, root: str, attach: Attach) -> None:
    """Add the catalog of a session to every session that Python meets later in its application."""
    _ROOTS.setdefault(spark.sparkContext, {})[name] = root
    _HAVE_CATALOGS.add(session_id(spark))
    original = SparkSession.__init__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def init(self: SparkSession, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _attach_all(self, attach)

    setattr(init, _MARK, True)
    SparkSession.__init__ = init  # type: ignore[method-assign]


def _attach_all(spark: SparkSession, attach: Attach) -> None:
    roots = _ROOTS.get(spark.sparkContext)
    if roots is None or session_id(spark) in _HAVE_CATALOGS:
        return
    for name, root in list(roots.items()):
        attach(spark, name, root)
    _HAVE_CATALOGS.add(session_id(spark))
