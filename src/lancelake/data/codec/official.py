"""Files of the official codec, whose package is imported with the first one: it loads slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter


def file_reader(*args: Any, **options: Any) -> LanceFileReader:
    """Open a file for reading."""
    from lance.file import LanceFileReader  # noqa: PLC0415  # see above

    return LanceFileReader(*args, **options)


def file_writer(*args: Any, **options: Any) -> LanceFileWriter:
    """Open a file for writing."""
    from lance.file import LanceFileWriter  # noqa: PLC0415  # see above

    return LanceFileWriter(*args, **options)


def file_session(*args: Any, **options: Any) -> LanceFileSession:
    """Open a folder of files."""
    from lance.file import LanceFileSession  # noqa: PLC0415  # see above

    return LanceFileSession(*args, **options)
