"""Compile the Java classes of the Spark connector into the jar that the package contains.

The compiler is Janino, which PySpark brings along, so a Java runtime is all that is needed. Equal
sources make equal bytes.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

from lancelake.version import __version__

_SOURCES = Path(__file__).parent.parent / "java"
_JAR = Path(__file__).parent.parent / "src/lancelake/spark/jars/lancelake-spark.jar"
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def compiled() -> bytes:
    """Return the jar."""
    with tempfile.TemporaryDirectory() as folder:
        compile_files(sorted(_SOURCES.rglob("*.java")), Path(folder))
        classes = {str(f.relative_to(folder)): f.read_bytes() for f in Path(folder).rglob("*.*")}
    resources = {
        str(f.relative_to(_SOURCES)): f.read_bytes() for f in (_SOURCES / "META-INF").rglob("*.*")
    }
    manifest = f"Manifest-Version: 1.0\r\nImplementation-Version: {__version__}\r\n\r\n"
    first = {"META-INF/MANIFEST.MF": manifest.encode()}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in (first | dict(sorted((resources | classes).items()))).items():
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            jar.writestr(entry, content)
    return data.getvalue()


def compile_files(sources: list[Path], folder: Path) -> None:
    """Write the classes of source files into a folder."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        jvm = gateway.jvm
        compiler = jvm.org.codehaus.janino.CompilerFactory().newCompiler()
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setDestinationDirectory(jvm.java.io.File(str(folder)), False)
        compiler.setDebugLines(True)
        compiler.setDebugSource(True)
        compiler.compile(_files(gateway, sources))
    finally:
        gateway.shutdown()


def _files(gateway: Any, paths: list[Path]) -> Any:
    found = gateway.new_array(gateway.jvm.java.io.File, len(paths))
    for position, path in enumerate(paths):
        found[position] = gateway.jvm.java.io.File(str(path))
    return found


def main() -> int:
    """Write the jar, or with --check compare it with the sources."""
    if "--check" not in sys.argv:
        _JAR.write_bytes(compiled())
        return 0
    if _JAR.read_bytes() == compiled():
        return 0
    print("the jar is not what the Java sources compile to: run `make jar`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
