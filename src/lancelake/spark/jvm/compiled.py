"""Java classes compiled at run time for executors, for tasks that no Spark class performs.

Janino, the compiler that Spark uses for generated code, compiles them before the first use, once
per JVM, and executors receive them like any jar. If that fails, slower Spark classes are used
instead, and a warning gives the reason.
"""

from __future__ import annotations

import importlib.resources
import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from lancelake.spark.jvm.gateway import Gateway

_PACKAGE = "lancelake.spark.jvm"
_SOURCES = ("PythonWork", "ColumnarReaderFactory", "RowWork")
"""A class is listed after those it uses."""

_LOADERS: dict[str, Any] = {}
"""The class loader of each application; None if the classes do not match its Spark."""


def are_compiled(gateway: Gateway) -> bool:
    """Whether the classes match this Spark."""
    return _loader(gateway) is not None


def make(gateway: Gateway, name: str, *arguments: Any) -> Any:
    """Create an object of a compiled class; None if the classes do not match this Spark."""
    loader = _loader(gateway)
    if loader is None:
        return None
    constructor = gateway.once(
        f"constructor of {name}", lambda: loader.loadClass(f"lancelake.{name}").getConstructors()[0]
    )
    return constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), arguments))


def driver_class(gateway: Gateway, name: str) -> Any:
    """Return a class that only the driver uses, compiled once per JVM."""

    def load() -> Any:
        return _cooked(gateway, name).getClassLoader().loadClass(f"lancelake.{name}")

    return gateway.once_per_jvm(f"class {name}", load)


def driver_object(gateway: Gateway, name: str, *arguments: Any) -> Any:
    """Create an object of a class that only the driver uses, with its longest constructor."""

    def longest() -> Any:
        return max(
            driver_class(gateway, name).getConstructors(), key=lambda c: c.getParameterCount()
        )

    constructor = gateway.once(f"constructor of {name}", longest)
    return constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), arguments))


def _cooked(gateway: Gateway, name: str, parent: Any = None) -> Any:
    """Compile one source file and return its compiler, which holds the class."""
    source = importlib.resources.files(_PACKAGE).joinpath(f"{name}.java")
    compiler = gateway.cls("org.codehaus.janino.SimpleCompiler")()
    # The loader of Spark's own classes, which every application of the JVM shares.
    compiler.setParentClassLoader(parent or gateway.session_state().getClass().getClassLoader())
    compiler.cook(source.read_text(encoding="utf-8"))
    return compiler


def _loader(gateway: Gateway) -> Any:
    if gateway.application not in _LOADERS:
        _LOADERS[gateway.application] = _loaded_or_none(gateway)
    return _LOADERS[gateway.application]


def _loaded_or_none(gateway: Gateway) -> Any:
    try:
        return _loaded(gateway)
    except Py4JError as error:
        text = (
            f"Lance tables are read and written row by row, which is slower: Spark "
            f"{gateway.spark.version} does not run the Java classes of lancelake: {_reason(error)}"
        )
        warnings.warn(text, stacklevel=2)
        return None


def _reason(error: Py4JError) -> str:
    """Return the root cause of a Java exception, in one line."""
    exception = getattr(error, "java_exception", None)
    if exception is None:
        return str(error).strip().partition("\n")[0]
    while exception.getCause() is not None:
        exception = exception.getCause()
    return str(exception.toString()).partition("\n")[0]


def _loaded(gateway: Gateway) -> Any:
    """Distribute the compiled classes to executors, and check that they match this Spark."""
    session = gateway.spark._jsparkSession
    session.sessionState().resourceLoader().addJar(str(_jar(gateway)))
    loader = session.sharedState().jarClassLoader()
    nothing = gateway.array(gateway.cls("java.lang.Class"), [])
    check = loader.loadClass("lancelake.PythonWork").getMethod("check", nothing)
    check.invoke(None, gateway.array(gateway.cls("java.lang.Object"), []))
    return loader


def _jar(gateway: Gateway) -> Path:
    """Return a jar with the classes, in the folder that Spark removes when the session stops."""
    root = gateway.member("org.apache.spark.SparkFiles", "getRootDirectory")()
    path = Path(root) / "lancelake" / "lancelake.jar"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gateway.once_per_jvm("jar", lambda: _jar_bytes(gateway)))
    return path


def _jar_bytes(gateway: Gateway) -> bytes:
    data, parent = io.BytesIO(), None
    with zipfile.ZipFile(data, "w") as jar:
        for name in _SOURCES:
            compiler = _cooked(gateway, name, parent)
            parent = compiler.getClassLoader()
            for compiled, code in dict(compiler.getBytecodes()).items():
                jar.writestr(compiled.replace(".", "/") + ".class", bytes(code))
    return data.getvalue()
