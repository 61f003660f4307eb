"""Columns from Python workers to Spark without a detour through rows.

Spark has no class for that, so one is compiled before the first read, by the compiler that Spark
itself uses for generated code, and handed to executors like any jar. Where that fails, Spark's own
reader does the work, row by row.
"""

from __future__ import annotations

import importlib.resources
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from lancelake.spark.jvm.door import Door

_PACKAGE = "lancelake.spark.jvm"
_SOURCE = "ColumnarReaderFactory.java"
_CLASS = "lancelake.ColumnarReaderFactory"
_CONSTRUCTORS: dict[str, Any] = {}


def columnar_factory(door: Door, *arguments: Any) -> Any:
    """Return a factory of readers that hand over columns; None when there is none."""
    constructor = _constructor(door)
    if constructor is None:
        return None
    return constructor.newInstance(door.array(door.jvm.java.lang.Object, arguments))


def is_columnar(door: Door) -> bool:
    """Whether batches can be handed over as columns."""
    return _constructor(door) is not None


def _constructor(door: Door) -> Any:
    if door.application not in _CONSTRUCTORS:
        try:
            _CONSTRUCTORS[door.application] = _loaded(door)
        except Py4JError:
            _CONSTRUCTORS[door.application] = None
    return _CONSTRUCTORS[door.application]


def _loaded(door: Door) -> Any:
    """Compile the class, make it known to executors, and check that it fits this Spark."""
    state = door.spark._jsparkSession
    jar = _compiled(door)
    state.sessionState().resourceLoader().addJar(jar)
    found = state.sharedState().jarClassLoader().loadClass(_CLASS)
    none = door.array(door.jvm.java.lang.Class, [])
    nothing = door.array(door.jvm.java.lang.Object, [])
    found.getMethod("check", none).invoke(None, nothing)
    return found.getConstructors()[0]


def _compiled(door: Door) -> str:
    """Return the path of a jar with the compiled class."""
    text = importlib.resources.files(_PACKAGE).joinpath(_SOURCE).read_text(encoding="utf-8")
    compiler = door.cls("org.codehaus.janino.SimpleCompiler")()
    thread = door.jvm.java.lang.Thread.currentThread()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(text)
    path = Path(tempfile.mkdtemp(prefix="lancelake-")) / "lancelake-columnar.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in dict(compiler.getBytecodes()).items():
            jar.writestr(name.replace(".", "/") + ".class", bytes(code))
    return str(path)
