"""What one writer is asked to do, and how much it has done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from lancelake.data.arrays.text import InvalidText
from lancelake.errors import InvalidRequestError
from lancelake.format import file_version
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.storage.location import Location

MAX_ROWS_PER_FILE = 1024 * 1024
MAX_BYTES_PER_FILE = 90 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """Rows to write: into which table, in which format, cut into files of which size.

    It can be pickled, so that another process may do the work.
    """

    root: Location
    schema: Schema
    file_version: FileVersion = file_version.DEFAULT
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    """A file is closed soon after it has reached this size."""

    bases: tuple[BasePath | None, ...] = (None,)
    """Where data files go, in turn; None is the root."""

    casts: bool = False
    """Whether values of another type are converted when nothing is lost; else they are refused."""

    allow_external_blobs: bool = False
    """Whether blobs may be URIs of objects outside the table."""

    text: InvalidText = InvalidText.REFUSE
    """What happens to strings that are not UTF-8."""

    newest_readers_only: bool = False
    """Whether to write also what pylance 4 cannot read."""

    def __post_init__(self) -> None:
        """Refuse limits that no file can keep, and files that have no place."""
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            if getattr(self, name) < 1:
                raise InvalidRequestError(f"{name} must be at least 1", found=getattr(self, name))
        if not self.bases:
            raise InvalidRequestError("data files have no place to go to")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """How much has been written."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0

    @staticmethod
    def of(fragments: Iterable[Fragment]) -> WriteCounts:
        """Count what these fragments hold."""
        every = tuple(fragments)
        files = [file for fragment in every for file in fragment.files]
        return WriteCounts(
            rows=sum(fragment.physical_rows or 0 for fragment in every),
            files=len(files),
            size_bytes=sum(file.file_size_bytes or 0 for file in files),
        )


Progress = Callable[[WriteCounts], None]
"""Told after every batch: rows handed to the codec, files closed, and the bytes of those."""


class FileWatch(Protocol):
    """Told about every data file."""

    def begun(self, fragment: Fragment) -> None:
        """Take note of a file that is about to be written, so far without columns and rows."""
        ...

    def completed(self, fragment: Fragment) -> None:
        """Take note of a file that is written."""
        ...
