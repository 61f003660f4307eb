"""Files of the official codec, whose package is imported with the first one: it loads slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lancelake.data.codec.library import codec_is_loaded, codec_module

if TYPE_CHECKING:
    from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter


def file_reader(*args: Any, **options: Any) -> LanceFileReader:
    """Open a file for reading."""
    made: LanceFileReader = codec_module("file").LanceFileReader(*args, **options)
    return made


def file_writer(*args: Any, **options: Any) -> LanceFileWriter:
    """Open a file for writing."""
    made: LanceFileWriter = codec_module("file").LanceFileWriter(*args, **options)
    return made


def file_session(*args: Any, **options: Any) -> LanceFileSession:
    """Open a folder of files."""
    made: LanceFileSession = codec_module("file").LanceFileSession(*args, **options)
    return made


def file_member(name: str) -> Any:
    """Return a public name of the codec's module for single files."""
    return getattr(codec_module("file"), name)


def arrow_member(name: str) -> Any:
    """Return a public name of the codec's Arrow types.

    Arrow knows one type of a name in a process, and the codec registers its own.
    """
    from lance import arrow  # noqa: PLC0415  # it loads slowly

    return getattr(arrow, name)


def blob_member(name: str) -> Any:
    """Return a class of the blob values that file sessions of the codec return and take."""
    return getattr(codec_module("lance"), name)


def counter(name: str) -> int:
    """Return a counter of the codec: of the reads of all files since the process started."""
    return int(getattr(codec_module("lance"), name)())


def reads_so_far() -> tuple[int, int]:
    """Return the requests and the bytes of the codec's reads; an unused codec is not loaded."""
    if not codec_is_loaded():
        return 0, 0
    return counter("iops_counter"), counter("bytes_read_counter")
