"""Pickling of functions and objects for executors, which may lack the lancelake package.

Pickles refer to this package by name, and an executor without it would fail with an unpickling
error. What is sent is therefore a function pickled by value, which loads the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark import cloudpickle
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lancelake import __version__
from lancelake.engine import wire

_Result = TypeVar("_Result")


def portable(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return an equivalent function that any interpreter can unpickle."""
    load, payload = _loader(), _sealed(function)

    def run(*args: Any) -> _Result:
        found: Callable[..., _Result] = load(payload)
        return found(*args)

    return run


class Portable:
    """An object that any interpreter with this package can unpickle.

    Any other raises an error that names the missing package. The attributes must be picklable.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value the function that loads the object."""
        return _loader(), (wire.dumps((_Rebuilt(type(self)), vars(self))),)


def worker_command(function: Callable[..., Any], result: StructType) -> bytes:
    """Return a function and its result type in the form that Spark's Python workers expect."""
    pickled: bytes = CPickleSerializer().dumps((portable(function), result))  # type: ignore[no-untyped-call]
    return pickled


def portable_source(source: type[DataSource]) -> type[DataSource]:
    """Return a data source class that any interpreter can unpickle.

    Spark also creates data sources on the driver in the interpreter that it starts on executors.
    """
    load, name, payload = _loader(), source.name(), _sealed(source)

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
        made: Any = object.__new__(self._cls)
        vars(made).update(members)
        return made


def _sealed(value: object) -> bytes:
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return wire.seal(pickled)


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
                f"the Python package lancelake is not installed for {sys.executable} on "
                f"{platform.node()}, where a Spark executor reads or writes Lance tables. "
                "Install it on every executor, or ship an environment with spark.archives."
            )
        try:
            from lancelake.engine.wire import loads  # noqa: PLC0415
        except ImportError as error:
            from lancelake.errors import UnsupportedError  # noqa: PLC0415

            raise UnsupportedError(
                f"the driver runs lancelake {release}, and {sys.executable} on {platform.node()} "
                "has an older release",
                action="Install the same release for the driver and for every executor.",
            ) from error
        found = loads(payload)
        if isinstance(found, tuple):
            rebuild, members = found
            return rebuild(members)
        return found

    return load
