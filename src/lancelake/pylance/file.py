"""Single data files, as in pylance: the classes of the codec, loaded when they are used."""

from __future__ import annotations

from typing import Any

from lancelake.data.codec import official
from lancelake.format import file_version

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
    return file_version.DEFAULT.value


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return official.file_member(name)


def __dir__() -> list[str]:
    return [*_NAMES, "stable_version"]
