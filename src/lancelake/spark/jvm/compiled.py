"""Java classes compiled at run time for executors, for tasks that no Spark class performs.

Janino, the compiler that Spark uses for generated code, compiles them before the first use, and
executors receive them like any jar. If that fails, slower Spark classes are used instead.
"""

from __future__ import annotations

import importlib.resources
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from lancelake.spark.jvm.gateway import Gateway

_PACKAGE = "lancelake.spark.jvm"
_SOURCES = ("PythonWork", "ColumnarReaderFactory", "RowWork")
"""A class is listed after those it uses."""

_LOADERS: dict[str, Any] = {}


def are_compiled(gateway: Gateway) -> bool:
    """Whether the classes could be compiled."""
    return _loader(gateway) is not None


def make(gateway: Gateway, name: str, *arguments: Any) -> Any:
    """Create an object of a compiled class; None if there are no compiled classes."""
    loader = _loader(gateway)
    if loader is None:
        return None
    constructor = gateway.once(
        f"constructor of {name}", lambda: loader.loadClass(f"lancelake.{name}").getConstructors()[0]
    )
    return constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), arguments))


def cook(gateway: Gateway, name: str, parent: Any = None) -> Any:
    """Compile one source file and return its compiler, which holds the class."""
    source = importlib.resources.files(_PACKAGE).joinpath(f"{name}.java")
    compiler = gateway.cls("org.codehaus.janino.SimpleCompiler")()
    thread = gateway.member("java.lang.Thread", "currentThread")()
    compiler.setParentClassLoader(parent or thread.getContextClassLoader())
    compiler.cook(source.read_text(encoding="utf-8"))
    return compiler


def _loader(gateway: Gateway) -> Any:
    if gateway.application not in _LOADERS:
        try:
            _LOADERS[gateway.application] = _loaded(gateway)
        except Py4JError:
            _LOADERS[gateway.application] = None
    return _LOADERS[gateway.application]


def _loaded(gateway: Gateway) -> Any:
    """Compile the classes, distribute them to executors, and check that they match this Spark."""
    session = gateway.spark._jsparkSession
    session.sessionState().resourceLoader().addJar(_jar(gateway))
    loader = session.sharedState().jarClassLoader()
    nothing = gateway.array(gateway.cls("java.lang.Class"), [])
    check = loader.loadClass("lancelake.PythonWork").getMethod("check", nothing)
    check.invoke(None, gateway.array(gateway.cls("java.lang.Object"), []))
    return loader


def _jar(gateway: Gateway) -> str:
    """Return the path of a jar with the compiled classes."""
    path = Path(tempfile.mkdtemp(prefix="lancelake-")) / "lancelake.jar"
    parent = None
    with zipfile.ZipFile(path, "w") as jar:
        for name in _SOURCES:
            compiler = cook(gateway, name, parent)
            parent = compiler.getClassLoader()
            for compiled, code in dict(compiler.getBytecodes()).items():
                jar.writestr(compiled.replace(".", "/") + ".class", bytes(code))
    return str(path)
