"""Single data files, as in pylance: the classes of the codec, loaded when they are used."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any

from lancelake.core.values.writes import DEFAULT_VERSION
from lancelake.data.codec.official import file_member

_NAMES = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "ReaderResults",
]


def stable_version() -> str:
    """Return the version of data files that tables have unless another one is given."""
    return DEFAULT_VERSION.value


@cache
def _writer() -> Any:
    """Return the codec's writer, whose files have the version of new tables by default."""
    base = file_member("LanceFileWriter")

    class LanceFileWriter(base):  # type: ignore[misc, valid-type]  # loaded when it is used
        __doc__ = base.__doc__
        __signature__ = signature(base)

        def __init__(
            self, path: Any, schema: Any = None, *, version: str | None = None, **options: Any
        ) -> None:
            super().__init__(path, schema, version=version or stable_version(), **options)

    return LanceFileWriter


def __getattr__(name: str) -> Any:
    if name == "LanceFileWriter":
        return _writer()
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return file_member(name)


def __dir__() -> list[str]:
    return [*_NAMES, "stable_version"]
