"""Membership in pyarrow's dataset classes, safe for pyarrow's own functions.

pyarrow's functions use the C++ object behind their arguments and do not check that there is one. A
dataset therefore has one, whose reading raises an error. Scanners and fragments cannot be given
one: they are instances of pyarrow's classes for `isinstance`, but not for C++ code.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from lancelake.errors import UnsupportedError

_ADVICE = "pass scanner().to_reader() of the LanceDataset instead"


def _refuse() -> NoReturn:
    raise UnsupportedError(
        "pyarrow cannot read a LanceDataset by itself",
        action="Pass ds.scanner(...).to_reader() or ds.to_table(...) instead.",
    )


class _UnreadableFiles:
    """A file system in the form of fsspec, in which no file can be opened."""

    protocol = "lance"

    def isfile(self, path: str) -> NoReturn:
        """Called before a file is opened."""
        _refuse()


def _unreadable() -> pads.Dataset:
    # The name of its column is part of the error that a union with other datasets raises.
    schema = pa.schema([pa.field(_ADVICE, pa.null())])
    files = pafs.PyFileSystem(pafs.FSSpecHandler(_UnreadableFiles()))
    kind = pads.IpcFileFormat()
    return pads.FileSystemDataset([kind.make_fragment(_ADVICE, files)], schema, kind, files)


_UNREADABLE = _unreadable()


class ArrowDataset(pads.UnionDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset of pyarrow that raises an error when pyarrow itself reads it.

    A union is the class of pyarrow that takes microseconds to make and has the fewest methods.
    """

    def __new__(cls, *_args: Any, **_kwargs: Any) -> ArrowDataset:
        """Make the C++ object."""
        made = super().__new__(cls)
        pads.UnionDataset.__init__(made, _UNREADABLE.schema, [_UNREADABLE])
        return made  # type: ignore[no-any-return]  # pyarrow has no types

    def _scanner_options(self, options: dict[str, Any]) -> NoReturn:
        """Called by pyarrow before it scans."""
        _refuse()

    @property
    def children(self) -> NoReturn:
        """Not an attribute: the table is no union."""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'children'")


class _InstanceOf:
    """Instances of a class of pyarrow for `isinstance` alone."""

    _arrow_class: type
    _claimed: type

    @property  # type: ignore[misc]  # it is never assigned
    def __class__(self) -> type:
        return self._claimed

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "_arrow_class") and not issubclass(cls, cls._arrow_class):
            # A class of both, for callers that look methods up in the class of an object.
            both = (cls, cls._arrow_class)
            cls._claimed = type(cls.__name__, both, {"__module__": cls.__module__})


class ArrowScanner(_InstanceOf):
    """An instance of pyarrow's `Scanner`."""

    _arrow_class = pads.Scanner

    def to_reader(self) -> pa.RecordBatchReader:
        """Read as a stream."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows to another library."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


class ArrowFragment(_InstanceOf):
    """An instance of pyarrow's `Fragment`."""

    _arrow_class = pads.Fragment
