"""Compaction options, from the caller or the table's config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from lancelake.data.column_file import full_at_bytes
from lancelake.errors import InvalidRequestError, InvalidRequestOSError
from lancelake.format.ids import FragmentId
from lancelake.scan.request import Ordering

CONFIG_PREFIX = "lance.compaction."

_DEFAULT_TARGET_ROWS = 1024 * 1024
_DEFAULT_ROWS_PER_GROUP = 1024
_DEFAULT_THRESHOLD = 0.1
_DEFAULT_SETTLED_BYTES = 64 << 20
_LIMITS = ("max_source_fragments", "max_source_rows", "max_source_bytes")
_SIZES = ("max_bytes_per_file", "target_bytes_per_fragment", "batch_size", "num_threads")


class CompactionMode(Enum):
    """Whether values are decoded and encoded again, or pages are copied unchanged."""

    REENCODE = "reencode"
    TRY_BINARY_COPY = "try_binary_copy"
    FORCE_BINARY_COPY = "force_binary_copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """Conditions for rewriting a fragment, and how it is rewritten.

    Names and defaults are those of official Lance for the options it has.
    """

    target_rows_per_fragment: int = _DEFAULT_TARGET_ROWS
    """A fragment with fewer rows is merged with adjacent fragments."""

    target_bytes_per_fragment: int | None = None
    """A fragment of this many bytes is large enough, however few rows it has."""

    settled_bytes: int = _DEFAULT_SETTLED_BYTES
    """A fragment of this many bytes is merged only if adjacent fragments have a quarter of its
    rows.

    That way, appends to a large table do not cause all of it to be rewritten.
    """

    max_rows_per_group: int = _DEFAULT_ROWS_PER_GROUP
    """Accepted for compatibility with official Lance; only files of the legacy format have groups.
    """

    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = _DEFAULT_THRESHOLD
    """Fraction of deleted rows from which a fragment is rewritten on its own."""

    num_threads: int | None = None
    batch_size: int | None = None
    defer_index_remap: bool = False
    """Whether new row addresses are recorded for indices.

    Otherwise an index by row address no longer covers the rewritten rows; its results stay correct,
    and it covers those rows again after its next update.
    """

    compaction_mode: CompactionMode | None = None
    """Unset, pages are copied unchanged where that is possible and they are large."""

    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: frozenset[FragmentId] = frozenset()
    data_storage_version: str | None = None

    sort_by: tuple[Ordering, ...] = ()
    """Sort rows by these columns; every fragment is rewritten."""

    z_order_by: tuple[str, ...] = ()
    """Cluster rows along a Z-order curve through these columns; every fragment is rewritten."""

    def __post_init__(self) -> None:
        """Refuse invalid options."""
        if self.sort_by and self.z_order_by:
            raise InvalidRequestError("sort_by and z_order_by cannot be combined")
        for name in _LIMITS:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                msg = f"{name} must be greater than 0 (use None for no limit)"
                raise InvalidRequestOSError(msg)
        for name in (*_SIZES, "target_rows_per_fragment", "settled_bytes"):
            if getattr(self, name) is not None and getattr(self, name) < 0:
                raise InvalidRequestError(f"{name} must not be negative", found=getattr(self, name))

    @property
    def orders_rows(self) -> bool:
        """Whether rows are reordered."""
        return bool(self.sort_by or self.z_order_by)

    @property
    def file_bytes(self) -> int | None:
        """Size of the largest files to write; None for the default."""
        return full_at_bytes(self.max_bytes_per_file) if self.max_bytes_per_file else None

    @property
    def settled_at_bytes(self) -> float:
        """Size from which a fragment counts as full although it has fewer rows."""
        sizes = [s for s in (self.target_bytes_per_fragment, self.file_bytes) if s]
        # Files are split by an estimate of their size, so full ones may be a little smaller.
        return min(sizes) * 0.75 if sizes else float("inf")


def from_config(config: Mapping[str, str]) -> CompactionSettings:
    """Read the options set in a table's config; the others have their defaults."""
    given: dict[str, Any] = {}
    for key, text in config.items():
        name = key.removeprefix(CONFIG_PREFIX)
        if name != key and name in _READERS:
            given[name] = _READERS[name](key, text)
    return replace(CompactionSettings(), **given)


def mode_named(name: str) -> CompactionMode:
    """Return the mode with this name."""
    try:
        return CompactionMode(name)
    except ValueError as error:
        known = ", ".join(f'"{mode.value}"' for mode in CompactionMode)
        msg = f'Invalid compaction mode "{name}". Valid values: {known}'
        raise InvalidRequestError(msg) from error


def _number(key: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise _wrong(key, text, "a non-negative integer")
    return int(text)


def _share(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise _wrong(key, text, "a number") from error


def _truth(key: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise _wrong(key, text, "true or false")
    return text == "true"


def _wrong(key: str, text: str, expected: str) -> InvalidRequestError:
    msg = f"Invalid value for {key}: '{text}' (expected {expected})"
    return InvalidRequestError(msg, action="Correct the table's config, or remove the key.")


_READERS: dict[str, Callable[[str, str], object]] = {
    "target_rows_per_fragment": _number,
    "target_bytes_per_fragment": _number,
    "settled_bytes": _number,
    "max_rows_per_group": _number,
    "max_bytes_per_file": _number,
    "materialize_deletions": _truth,
    "materialize_deletions_threshold": _share,
    "defer_index_remap": _truth,
    "batch_size": _number,
    "compaction_mode": lambda _, text: mode_named(text),
    "max_source_fragments": _number,
    "max_source_rows": _number,
    "max_source_bytes": _number,
    "data_storage_version": lambda _, text: text,
}
