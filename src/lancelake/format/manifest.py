"""Manifest of a version, and its feature flags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag

from lancelake.clock import utc_from_ns
from lancelake.errors import UnsupportedError
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, Version
from lancelake.format.schema import Schema


class FeatureFlags(IntFlag):
    """Bits of the reader and writer flag words."""

    DELETION_FILES = 1
    STABLE_ROW_IDS = 2
    V2_FILES = 4
    TABLE_CONFIG = 8
    BASE_PATHS = 16
    NO_TRANSACTION_FILES = 32
    OVERLAY_FILES = 64
    COVERING_INDICES = 128
    MIXED_FILE_VERSIONS = 256
    TAGGED_FRAGMENT_REUSE = 1024


_KNOWN_TO_4_0 = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.V2_FILES
    | FeatureFlags.TABLE_CONFIG
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.NO_TRANSACTION_FILES
)

# Covering columns and tagged fragment reuse only affect the content of indices, not rows.
READABLE = (
    _KNOWN_TO_4_0
    | FeatureFlags.COVERING_INDICES
    | FeatureFlags.MIXED_FILE_VERSIONS
    | FeatureFlags.TAGGED_FRAGMENT_REUSE
)
WRITABLE = _KNOWN_TO_4_0


def unknown_reader_flags(flags: int) -> int:
    """Unsupported flags for reading."""
    return flags & ~int(READABLE)


def unknown_writer_flags(flags: int) -> int:
    """Unsupported flags for writing."""
    return flags & ~int(WRITABLE)


def ensure_readable(flags: int) -> None:
    """Raise when a reader of this release would misread the table."""
    if unknown := unknown_reader_flags(flags):
        msg = f"the table needs reader features that are not supported (flags {unknown:#x})"
        raise UnsupportedError(msg, flags=unknown, action="Upgrade lancelake.")


def ensure_writable(flags: int) -> None:
    """Raise when a writer of this release would damage the table."""
    if unknown := unknown_writer_flags(flags):
        msg = f"the table needs writer features that are not supported (flags {unknown:#x})"
        action = "Upgrade lancelake, or only read the table."
        raise UnsupportedError(msg, flags=unknown, action=action)


# The flag words are plain numbers, which are combined faster than flags.
_STABLE_ROW_IDS = int(FeatureFlags.STABLE_ROW_IDS)
_EMPTY: FrozenMap[str, str] = FrozenMap()
_RELEASE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterVersion:
    """The library that wrote a version."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None

    @property
    def release(self) -> tuple[int, ...]:
        """Numbers of the release, such as (14, 0, 2); empty if the version has another form."""
        match = _RELEASE.match(self.version)
        return () if match is None else tuple(map(int, match[0].split(".")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Content of a version: schema, fragments, config and base paths."""

    schema: Schema
    fragments: Sequence[Fragment]
    version: Version
    data_version: FileVersion
    timestamp_ns: int | None = None
    writer_version: WriterVersion | None = None
    tag: str = ""
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    next_row_id: int = 0
    config: FrozenMap[str, str] = _EMPTY
    table_metadata: FrozenMap[str, str] = _EMPTY
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    version_aux_data: int = 0
    unknown: bytes = b""

    @property
    def timestamp(self) -> datetime | None:
        """When the version was committed."""
        return None if self.timestamp_ns is None else utc_from_ns(self.timestamp_ns)

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        flags = self.reader_feature_flags | self.writer_feature_flags
        return bool(flags & _STABLE_ROW_IDS)

    def base_path(self, base_id: BaseId) -> BasePath | None:
        """Return the declared base of this id."""
        return next((b for b in self.base_paths if b.id == base_id), None)
