"""Reader and writer feature flags, and checks for unsupported ones."""

from __future__ import annotations

from enum import IntFlag

from lancelake.errors import UnsupportedError


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
