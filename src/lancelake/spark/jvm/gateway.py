"""Gateway to the JVM of a session, and the classes of our jar in it.

A session that was started without the jar gets it here, and its executors with it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from lancelake.errors import UnsupportedError
from lancelake.spark.jars import jar

KNOWN_VERSIONS = ((4, 1), (4, 2), (4, 3))
"""Minor versions of Spark that this package supports internally."""

CONNECTOR = "org.apache.spark.sql.connector"
PYTHON_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python"
_NEEDED = (
    f"{PYTHON_SOURCE}.PythonInputPartition",
    f"{PYTHON_SOURCE}.PythonPartitionReaderFactory",
    f"{PYTHON_SOURCE}.UserDefinedPythonDataSource",
    "org.apache.spark.sql.classic.Dataset",
    "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation",
)


_RECENT = 256

_PER_JVM: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""Objects created once per JVM, by its connection."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The JVM of one classic session."""

    find_session: Callable[[], SparkSession]
    gateway: Any
    jvm: Any
    application: str
    """Id of the Spark application, which all sessions of one context share."""

    _known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cache of immutable Java objects, since every call to Java takes time.

    The sessions of an application share it.
    """

    @property
    def spark(self) -> SparkSession:
        """Return the session."""
        return self.find_session()

    def cls(self, name: str) -> Any:
        """Return a Java class by its full name."""
        if name not in self._known:
            self._known[name] = getattr(self.jvm, name)
        return self._known[name]

    def member(self, cls: str, name: str) -> Any:
        """Return a static method or constant of a Java class."""
        key = f"{cls}#{name}"
        if key not in self._known:
            self._known[key] = getattr(self.cls(cls), name)
        return self._known[key]

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a Java object that is created on first use."""
        key = f"once {name}"
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def recent(self, name: str, make: Callable[[], Any]) -> Any:
        """Return an immutable Java object, of which the most recently used are kept."""
        recent: dict[str, Any] = self._known.setdefault("recent objects", {})
        value = recent.pop(name, None)
        if value is None:
            value = make()
        recent[name] = value  # the last one
        if len(recent) > _RECENT:
            recent.pop(next(iter(recent)), None)
        return value

    def once_per_jvm(self, name: str, make: Callable[[], Any]) -> Any:
        """Return an object that all sessions and applications of the JVM share."""
        shared = _PER_JVM.setdefault(self.gateway, {})
        if name not in shared:
            shared[name] = make()
        return shared[name]

    def connector(self, name: str) -> Any:
        """Return a class of Spark's connector API by its name below `CONNECTOR`."""
        return self.cls(f"{CONNECTOR}.{name}")

    def array(self, cls: Any, items: Iterable[Any]) -> Any:
        """Return a Java array; items may be Python objects that implement interfaces."""
        members = list(items)
        if not members:
            return self.once(f"empty array of {cls._fqn}", lambda: self.gateway.new_array(cls, 0))
        result = self.gateway.new_array(cls, len(members))
        put = self.member("java.lang.reflect.Array", "set")
        for position, item in enumerate(members):
            put(result, position, item)
        return result

    def strings(self, items: Iterable[str]) -> Any:
        """Return a Java array of strings."""
        return self.array(self.cls("java.lang.String"), items)

    def byte_array(self, data: bytes) -> Any:
        """Return a Java array of bytes, sent in one message."""
        return self.member("java.util.Arrays", "copyOf")(bytearray(data), len(data))

    def map(self, items: Mapping[str, Any]) -> Any:
        """Return a Java map."""
        result = self.cls("java.util.HashMap")()
        for key, value in items.items():
            result.put(key, value)
        return result

    def set(self, items: Iterable[Any]) -> Any:
        """Return a Java set."""
        result = self.cls("java.util.HashSet")()
        for item in items:
            result.add(item)
        return result

    def enum_set(self, name: str, members: Collection[str]) -> Any:
        """Return members of an enum of the connector API, without those that this Spark lacks."""
        values = self.connector(name).values()
        return self.set([value for value in values if value.name() in members])

    def options(self, items: Mapping[str, str]) -> Any:
        """Return options as a map of the connector API."""
        if not items:
            empty = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
            return self.once("no options", self.member(empty, "empty"))
        return self.cls("org.apache.spark.sql.util.CaseInsensitiveStringMap")(self.map(items))

    def optional_long(self, value: int | None) -> Any:
        """Return an optional number."""
        optional = "java.util.OptionalLong"
        if value is None:
            return self.member(optional, "empty")()
        return self.member(optional, "of")(value)

    def none(self) -> Any:
        """Return Scala's empty option."""
        return self.once("none", self.member("scala.Option", "empty"))

    def session_state(self) -> Any:
        """Return the parsers, catalogs and settings of the session."""
        return self.spark._jsparkSession.sessionState()

    def conf(self, key: str, default: str) -> str:
        """Return a setting of the session."""
        return str(self.spark.conf.get(key, default))


_OPEN: dict[int, Gateway] = {}
"""The first session of the newest application of each connection."""


def open_gateway(spark: SparkSession) -> Gateway:
    """Return the JVM of a session; raise an error if it is unreachable or not supported."""
    if not is_classic(spark):
        raise needs_classic("planning in Python")
    gateway: Any = spark.sparkContext._gateway
    opened = _OPEN.get(id(gateway))
    if opened is None or opened.spark.sparkContext is not spark.sparkContext:
        opened = _OPEN[id(gateway)] = _open(spark, gateway)
    return opened if opened.spark is spark else replace(opened, find_session=lambda: spark)


def open_derived(gateway: Gateway, java_session: Any) -> Gateway:
    """Return the JVM of another session of the application, which Python does not keep alive.

    A Java object that Python refers to is never collected. A session would therefore be kept for
    ever by an object that refers to it from Python, and that it refers to itself.
    """
    reference = gateway.cls("java.lang.ref.WeakReference")(java_session)
    spark = gateway.spark
    context = spark.sparkContext
    others = {key: value for key, value in vars(spark).items() if key in _PARTS}

    def find() -> SparkSession:
        # The constructor would make this session the one of every RDD.
        session = object.__new__(SparkSession)
        vars(session).update(others, _sc=context, _jsparkSession=reference.get())
        return session

    return replace(gateway, find_session=find)


_PARTS = ("_jsc", "_jvm", "_profiler_collector")
"""Attributes that the sessions of an application have in common."""


def _open(spark: SparkSession, gateway: Any) -> Gateway:
    _ensure_known(spark)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    # A Java exception that a Python object raises deliberately is passed on to Spark unchanged.
    parameters = getattr(gateway, "python_parameters", gateway.callback_server_parameters)
    parameters.propagate_java_exceptions = True
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(_is_failure)
    application = str(spark.sparkContext.applicationId)
    opened = Gateway(lambda: spark, gateway, spark._jvm, application)
    _ensure_classes(opened)
    _put_jar(opened)
    return opened


def _is_failure(record: logging.LogRecord) -> bool:
    """Whether a log record is not that of an exception which a Python object raises for Java."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, Py4JJavaError) and str(error.errmsg) == RAISED)


RAISED = "raised for Spark"
"""Message of exceptions that Python objects raise deliberately."""


def is_classic(spark: Any) -> bool:
    """Whether the session runs in this process and not on Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def needs_classic(what: str) -> UnsupportedError:
    """Return the error for a feature that does not work on Spark Connect."""
    problem = f"{what} needs a classic Spark session, but this is a Spark Connect session"
    return UnsupportedError(problem, action="Use a classic session, or avoid this feature.")


def guard(gateway: Gateway, action: Callable[[], Any], what: str) -> Any:
    """Access internals; if they differ from what is expected, raise an error that names them."""
    try:
        return action()
    except Py4JJavaError:
        raise
    except (Py4JError, TypeError) as error:
        problem = f"Spark {gateway.spark.version} has no compatible {what}: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error


def _ensure_known(spark: SparkSession) -> None:
    major, minor = (int(part) for part in spark.version.split(".")[:2])
    if (major, minor) not in KNOWN_VERSIONS:
        versions = ", ".join(f"{a}.{b}" for a, b in KNOWN_VERSIONS)
        problem = f"planning in Python is supported on Spark {versions}, not on {spark.version}"
        raise UnsupportedError(problem, spark=spark.version)


def _ensure_classes(gateway: Gateway) -> None:
    find = gateway.member("java.lang.Class", "forName")
    for name in _NEEDED:
        guard(gateway, functools.partial(find, name), f"class {name}")


_CORES: dict[str, int] = {}


def cores(gateway: Gateway) -> int:
    """Return the number of tasks that run in parallel; cached, since it rarely changes."""
    if gateway.application not in _CORES:
        _CORES[gateway.application] = max(1, gateway.spark.sparkContext.defaultParallelism)
    return _CORES[gateway.application]


def driver_object(gateway: Gateway, name: str, *arguments: Any) -> Any:
    """Create an object of a class of the jar, with its longest constructor."""

    def longest() -> Any:
        loader = gateway.member("java.lang.Thread", "currentThread")().getContextClassLoader()
        constructors = loader.loadClass(f"lancelake.{name}").getConstructors()
        return max(constructors, key=lambda c: c.getParameterCount())

    constructor = gateway.once(f"constructor of {name}", longest)
    return constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), arguments))


def put_on_driver(jvm: Any) -> None:
    """Put the jar on the class path of a driver that was started without it."""
    place = jar().as_uri()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(_ENTRY) is not None:
        return
    try:
        loader.addURL(jvm.java.net.URI.create(place).toURL())
    except Py4JError as error:
        raise UnsupportedError(
            "the driver of this session was started without the jar of lancelake, which cannot "
            "be added any more",
            action=f"Start it with spark.jars={jar()}, or with lancelake.spark.session().",
        ) from error


_ENTRY = "lancelake/Planner.class"


def _put_jar(gateway: Gateway) -> None:
    """Put the jar on the driver and on executors, and check that it matches this Spark."""
    put_on_driver(gateway.jvm)
    context = gateway.spark._jsparkSession.sparkContext()
    if jar().name not in str(context.listJars().mkString(" ")):
        context.addJar(str(jar()))
    guard(gateway, gateway.jvm.lancelake.PythonWork.check, "workers of Python sources")
