"""Write task: rows to write as data files, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from lancelake.data.arrays.text import InvalidText
from lancelake.errors import InvalidRequestError, InvalidRequestOSError
from lancelake.format import file_version
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.storage.location import Location

MAX_ROWS_PER_FILE = 1024 * 1024
MAX_BYTES_PER_FILE = 90 * 1024**3
# The size of a page, below which official Lance does not close a file either.
LEAST_BYTES_PER_FILE = 8 << 20


def full_at_bytes(max_bytes_per_file: int) -> int:
    """Return the size at which a file is closed: the limit, or that of a page if it is lower."""
    return max(max_bytes_per_file, LEAST_BYTES_PER_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """Sizes of the pages of data files; None is the codec's own choice."""

    max_page_bytes: int | None = None
    """A page that would be larger is split."""

    data_cache_bytes: int | None = None
    """Bytes of all columns that are kept in memory to fill pages."""

    def __post_init__(self) -> None:
        """Refuse pages without bytes."""
        if self.max_page_bytes is not None and self.max_page_bytes < 1:
            problem = f"max_page_bytes must be greater than 0, got {self.max_page_bytes}"
            raise InvalidRequestOSError(problem, found=self.max_page_bytes)


DEFAULT_PAGES = PageSizes()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """Table, format and file size of rows to write.

    It can be pickled and run in another process.
    """

    root: Location
    schema: Schema
    file_version: FileVersion = file_version.DEFAULT
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    """A file is closed soon after it has reached this size, or `LEAST_BYTES_PER_FILE`."""

    bases: tuple[BasePath | None, ...] = (None,)
    """Bases for data files, used in turn; None is the root."""

    casts: bool = False
    """Whether values of another type are converted without loss; otherwise they are refused."""

    allow_external_blobs: bool = False
    """Whether blobs may be URIs of objects outside the table and its base paths."""

    declared_bases: tuple[BasePath, ...] = ()
    """Base paths of the table, below which blobs may be stored."""

    text: InvalidText = InvalidText.REFUSE
    """Handling of strings with invalid UTF-8."""

    pages: PageSizes = DEFAULT_PAGES
    newest_readers_only: bool = False
    """Whether to write types that pylance 4 cannot read."""

    @property
    def full_at_bytes(self) -> int:
        """Size at which a file is closed."""
        return full_at_bytes(self.max_bytes_per_file)

    def __post_init__(self) -> None:
        """Validate limits and bases."""
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            if getattr(self, name) < 1:
                raise InvalidRequestError(f"{name} must be at least 1", found=getattr(self, name))
        if not self.bases:
            raise InvalidRequestError("no base for data files is given")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """Progress of a write."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0

    @staticmethod
    def of(fragments: Iterable[Fragment]) -> WriteCounts:
        """Return the progress of these fragments."""
        every = tuple(fragments)
        files = [file for fragment in every for file in fragment.files]
        return WriteCounts(
            rows=sum(fragment.physical_rows or 0 for fragment in every),
            files=len(files),
            size_bytes=sum(file.file_size_bytes or 0 for file in files),
        )


Progress = Callable[[WriteCounts], None]
"""Called after every batch with the rows written, the files closed and their bytes."""


class FileWatch(Protocol):
    """Receives every data file."""

    def begun(self, fragment: Fragment) -> None:
        """Called before a file is written, without columns and rows yet."""
        ...

    def completed(self, fragment: Fragment) -> None:
        """Called after a file is written."""
        ...
