"""How is a table compacted? What callers ask for, and what the table's config says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from lancelake.errors import InvalidRequestError
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
    """Whether values are decoded and encoded again, or pages are taken over as they are."""

    REENCODE = "reencode"
    TRY_BINARY_COPY = "try_binary_copy"
    FORCE_BINARY_COPY = "force_binary_copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """What makes a fragment worth rewriting, and how it is rewritten.

    Names and defaults are those of official Lance as far as it has the option.
    """

    target_rows_per_fragment: int = _DEFAULT_TARGET_ROWS
    """A fragment with fewer rows is merged with its neighbours."""

    target_bytes_per_fragment: int | None = None
    """A fragment of so many bytes is large enough, however few rows it has."""

    settled_bytes: int = _DEFAULT_SETTLED_BYTES
    """A fragment of so many bytes is merged only when its neighbours have a quarter of its rows.

    That way what is added to a large table does not make all of it be rewritten.
    """

    max_rows_per_group: int = _DEFAULT_ROWS_PER_GROUP
    """Accepted for official Lance's sake; only files of the legacy format have groups."""

    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = _DEFAULT_THRESHOLD
    """The part of a fragment's rows that must be deleted for it to be rewritten alone."""

    num_threads: int | None = None
    batch_size: int | None = None
    defer_index_remap: bool = False
    """Whether indices follow rows through a record of where these went.

    Else an index that finds rows by address covers what was rewritten no more; its answers stay
    right, and it covers those rows again when it is next brought up to date.
    """

    compaction_mode: CompactionMode | None = None
    """Without it, pages are taken over as they are where that is possible and they are large."""

    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: frozenset[FragmentId] = frozenset()
    data_storage_version: str | None = None

    sort_by: tuple[Ordering, ...] = ()
    """Rows are sorted; every fragment is rewritten then."""

    z_order_by: tuple[str, ...] = ()
    """Rows that are near in all these columns come together; every fragment is rewritten then."""

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if self.sort_by and self.z_order_by:
            raise InvalidRequestError("rows are sorted by sort_by or by z_order_by, not by both")
        for name in _LIMITS:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                msg = f"{name} must be greater than 0 (use None for no limit)"
                raise InvalidRequestError(msg)
        for name in (*_SIZES, "target_rows_per_fragment", "settled_bytes"):
            if getattr(self, name) is not None and getattr(self, name) < 0:
                raise InvalidRequestError(f"{name} must not be negative", found=getattr(self, name))

    @property
    def orders_rows(self) -> bool:
        """Whether rows do not keep their order."""
        return bool(self.sort_by or self.z_order_by)

    @property
    def settled_at_bytes(self) -> float:
        """Size from which a fragment counts as full although rows are missing."""
        sizes = [s for s in (self.target_bytes_per_fragment, self.max_bytes_per_file) if s]
        # Files are cut by an estimate of their size, so full ones may be a little smaller.
        return min(sizes) * 0.75 if sizes else float("inf")


def from_config(config: Mapping[str, str]) -> CompactionSettings:
    """Read the options that a table's config sets; the others have their defaults."""
    given: dict[str, Any] = {}
    for key, text in config.items():
        name = key.removeprefix(CONFIG_PREFIX)
        if name != key and name in _READERS:
            given[name] = _READERS[name](key, text)
    return replace(CompactionSettings(), **given)


def mode_named(name: str) -> CompactionMode:
    """Return the mode of this name."""
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
    return InvalidRequestError(msg, action="Set the table's config right, or remove the key.")


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
