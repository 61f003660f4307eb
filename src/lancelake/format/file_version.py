"""Versions of data files, by name and by number."""

from __future__ import annotations

from enum import Enum

from lancelake.errors import CorruptTableError, UnsupportedError


class FileVersion(Enum):
    """A data file format."""

    LEGACY = "0.1"
    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"
    V2_3 = "2.3"

    @property
    def numbers(self) -> tuple[int, int]:
        """Major and minor as `DataFile` records them."""
        return _NUMBERS[self]

    @property
    def leaves_only(self) -> bool:
        """Whether only nodes that own a column are listed in `DataFile.fields`."""
        return self not in (FileVersion.LEGACY, FileVersion.V2_0)


UNNAMED = FileVersion.V2_0
"""Version of the files of a table whose manifest has a flag for them, but no name."""
DEFAULT = FileVersion.V2_1

_NUMBERS = {
    FileVersion.LEGACY: (0, 2),
    FileVersion.V2_0: (2, 0),
    FileVersion.V2_1: (2, 1),
    FileVersion.V2_2: (2, 2),
    FileVersion.V2_3: (2, 3),
}
_BY_NUMBERS = {
    (0, 0): FileVersion.LEGACY,
    (0, 1): FileVersion.LEGACY,
    (0, 2): FileVersion.LEGACY,
    (0, 3): FileVersion.V2_0,
    (2, 0): FileVersion.V2_0,
    (2, 1): FileVersion.V2_1,
    (2, 2): FileVersion.V2_2,
    (2, 3): FileVersion.V2_3,
}
_BY_NAME = {version.value: version for version in FileVersion} | {
    "0.3": FileVersion.V2_0,
    "legacy": FileVersion.LEGACY,
    "stable": DEFAULT,
    "next": FileVersion.V2_2,
}


def from_name(name: str) -> FileVersion:
    """Read the version string of `Manifest.data_format`."""
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        msg = f"Unknown Lance storage version: {name}"
        raise UnsupportedError(msg, found=name) from None


def from_numbers(major: int, minor: int) -> FileVersion:
    """Read the version numbers of a `DataFile`."""
    try:
        return _BY_NUMBERS[(major, minor)]
    except KeyError:
        msg = f"unknown data file version {major}.{minor}"
        raise UnsupportedError(msg, found=f"{major}.{minor}") from None


def only(versions: set[FileVersion]) -> FileVersion:
    """Return the one version that all files share."""
    if len(versions) == 1:
        return next(iter(versions))
    names = ", ".join(sorted(v.value for v in versions))
    msg = f"data files of different versions ({names}) in a table without a data file version"
    raise CorruptTableError(msg, found=names)
