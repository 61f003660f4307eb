"""Functions and objects that run on executors, and say so clearly where this package is missing.

Pickles refer to this package by name, and an executor without it would fail with an error about
unpickling. What is sent is therefore a function pickled by value, which loads the rest.
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
    """Return a function that does the same and can be unpickled by any interpreter."""
    load, payload = _loader(), _sealed(function)

    def run(*args: Any) -> _Result:
        found: Callable[..., _Result] = load(payload)
        return found(*args)

    return run


class Portable:
    """An object that can be unpickled by any interpreter that has this package.

    Any other says what it lacks. The members must be picklable.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value what loads the object."""
        return _loader(), (wire.dumps((_Rebuilt(type(self)), vars(self))),)


def worker_command(function: Callable[..., Any], result: StructType) -> bytes:
    """Return a function and the type of its results as Spark's Python workers take them."""
    pickled: bytes = CPickleSerializer().dumps((portable(function), result))  # type: ignore[no-untyped-call]
    return pickled


def portable_source(source: type[DataSource]) -> type[DataSource]:
    """Return a class of data sources that any interpreter can unpickle.

    Spark also makes data sources on the driver in the interpreter that it starts on executors.
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
    """Makes an object of a class again from its members."""

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
    """Return a function that is pickled by value: it is nested and names nothing around it."""
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
