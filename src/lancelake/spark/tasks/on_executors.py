"""What executors need, and the messages they return.

Pickles refer to this package by name, and an executor without it would fail with an unpickling
error. What is sent is therefore a function pickled by value, which loads the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import SparkContext, cloudpickle
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lancelake import __version__
from lancelake.core.values.metadata import Fragment, from_bytes, to_bytes
from lancelake.core.values.tasks import port
from lancelake.errors import LanceTableError, UnsupportedError

_Result = TypeVar("_Result")


def portable(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return an equivalent function that any interpreter can unpickle."""
    load, payload = _loader(), _seal(_Concise(function))

    def run(*args: Any) -> _Result:
        loaded: Callable[..., _Result] = load(payload)
        return loaded(*args)

    return run


class _Concise:
    """A function whose errors of ours are shown without the traceback of the worker."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        with _hiding_traceback():
            result = self._function(*args)
        return _concise(result) if isinstance(result, Iterator) else result


def _concise(items: Iterator[_Result]) -> Iterator[_Result]:
    with _hiding_traceback():
        yield from items


@contextmanager
def _hiding_traceback() -> Iterator[None]:
    try:
        yield
    except LanceTableError:
        # Spark reads the setting when it reports the error, which is the worker's last act.
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


class Portable:
    """An object that any interpreter with this package can unpickle.

    Any other raises an error that names the missing package. The attributes must be picklable.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value the function that loads the object."""
        return _loader(), (port.dumps((_Rebuilt(type(self)), vars(self))),)


def worker_command(function: Callable[..., Any], result: StructType) -> bytes:
    """Return a function and its result type in the form that Spark's Python workers expect."""
    pickled: bytes = CPickleSerializer().dumps((portable(function), result))  # type: ignore[no-untyped-call]
    return pickled


def portable_source(source: type[DataSource]) -> type[DataSource]:
    """Return a data source class that any interpreter can unpickle.

    Spark also creates data sources on the driver in the interpreter that it starts on executors.
    """
    load, name, payload = _loader(), source.name(), _seal(source)

    class PortableSource(DataSource):
        def __new__(cls, options: dict[str, str]) -> Any:
            return load(payload)(options)

        @classmethod
        def name(cls) -> str:
            return name

    return PortableSource


class _Rebuilt:
    """Recreates an object of a class from its attributes."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __call__(self, members: dict[str, Any]) -> Any:
        instance: Any = object.__new__(self._cls)
        vars(instance).update(members)
        return instance


def _seal(value: object) -> bytes:
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return port.seal(pickled)


def _loader() -> Callable[[bytes], Any]:
    """Return a function that is pickled by value: it is nested and has no outer references."""
    release = __version__

    def load(payload: bytes) -> Any:
        import importlib.util  # noqa: PLC0415  # globals of this module do not travel
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        spec = importlib.util.find_spec("lancelake")
        # A folder of that name without the package is found as well, but has no origin.
        if spec is None or spec.origin is None:
            raise RuntimeError(
                f"{sys.executable} on {platform.node()}, where a Spark executor reads or writes "
                "Lance tables, does not have lancelake. "
                "Install it on every executor, or ship an environment with spark.archives."
            )
        try:
            from lancelake.engine.port import loads  # noqa: PLC0415
        except ImportError as error:
            from lancelake.errors import UnsupportedError  # noqa: PLC0415

            raise UnsupportedError(
                f"the driver runs lancelake {release}, and {sys.executable} on {platform.node()} "
                "has an older release",
                action="Install the same release for the driver and for every executor.",
            ) from error
        loaded = loads(payload)
        if isinstance(loaded, tuple):
            rebuild, members = loaded
            return rebuild(members)
        return loaded

    return load


def sealed_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Return the message of a task that wrote fragments."""
    return port.seal(to_bytes(fragments))


def unsealed_fragments(messages: Iterable[bytes]) -> tuple[Fragment, ...]:
    """Return the fragments that tasks wrote, in the order of their messages."""
    return tuple(f for message in messages for f in from_bytes(port.unseal(message)))


MESSAGE = "message"

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Processes the rows of a partition on a worker, and returns messages."""


def message_batch(message: bytes) -> pa.RecordBatch:
    """Return the batch with one message."""
    return pa.record_batch([pa.array([message], pa.binary())], names=[MESSAGE])


_NEEDED = ("lancelake", "pyarrow", "lance", "datafusion", "obstore", "google.protobuf", "pyroaring")
_PACKAGES = {"lance": "pylance", "google.protobuf": "protobuf"}
_CHECKED: set[str] = set()


def ensure_workers(context: SparkContext) -> None:
    """Raise an error if Python workers run an interpreter without our packages.

    Spark itself imports PyArrow before it calls anything of ours, and fails without saying where.
    """
    application = str(context.applicationId)
    if application in _CHECKED:
        return
    if not _is_this_one(context):
        python, node, missing = context.parallelize([0], 1).map(_finder(_NEEDED)).first()
        if missing:
            packages = ", ".join(_PACKAGES.get(name, name) for name in missing)
            raise UnsupportedError(
                f"the Python workers of this Spark session run {python} on {node}, which does not "
                f"have {packages}",
                action="Install lancelake there, or create the session with "
                "lancelake.spark.session(), or with spark.pyspark.python or PYSPARK_PYTHON set to "
                f"an interpreter that has it, such as {sys.executable}.",
            )
    _CHECKED.add(application)


def _is_this_one(context: SparkContext) -> bool:
    """Whether workers run in the interpreter of this process, on this machine."""
    return str(context.master).startswith("local") and context.pythonExec == sys.executable


def _finder(needed: Iterable[str]) -> Callable[[int], tuple[str, str, list[str]]]:
    """Return a function that is pickled by value: it is nested and has no outer references."""

    def find(_: int) -> tuple[str, str, list[str]]:
        import importlib.util  # noqa: PLC0415  # globals of this module do not travel
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        def is_missing(name: str) -> bool:
            try:
                spec = importlib.util.find_spec(name)
            except ImportError:
                return True
            # A folder of that name without the package is found as well, but has no origin.
            return spec is None or spec.origin is None

        return sys.executable, platform.node(), [name for name in needed if is_missing(name)]

    return find
