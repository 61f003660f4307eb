"""Traits of fragments that decide how they are processed, read from encoded fragments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from google.protobuf.message import DecodeError

from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.format.ids import MAX_FRAGMENT_ID, MAX_ROWS, TOMBSTONE, FragmentId
from lancelake.proto import columns_pb2, table_pb2

# The encoded field id of a replaced column (-2); other bytes may be the same.
_TOMBSTONE_BYTES = b"\xfe" + b"\xff" * 8 + b"\x01"

FileNumbers = tuple[int, int]
"""Major and minor version of a data file."""

_Deleted = Literal["none", "counted", "uncounted"]
_Columns = columns_pb2.FragmentColumns.Fragments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """Traits of a fragment; equal traits are one object."""

    file_numbers: frozenset[FileNumbers]
    has_several_files: bool
    lacks_file_size: bool
    may_have_tombstones: bool
    lacks_rows: bool
    lacks_deleted_rows: bool
    has_deletions: bool
    has_row_ids: bool
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Traits of many fragments; None where each must be inspected.

    `apart_from_deletions` are the traits of all fragments without the deletions of some.
    """

    ids: list[FragmentId] | None
    live_rows: int | None
    apart_from_deletions: Traits | None
    some_have_deletions: bool


def survey(encoded: bytes, payloads: list[bytes]) -> Survey | None:
    """Inspect encoded fragments column by column; None when they cannot be read this way."""
    try:
        columns = columns_pb2.FragmentColumns.FromString(encoded).fragments
    except DecodeError:
        return None
    rows = list(columns.physical_rows)
    deleted = [table_pb2.DeletionFile.FromString(d).num_deleted_rows for d in columns.deletion_file]
    has_all_rows = len(rows) == len(payloads) and min(rows, default=1) > 0
    is_counted = has_all_rows and min(deleted, default=1) > 0
    is_addressable = max(rows, default=0) <= MAX_ROWS
    return Survey(
        ids=_ids(columns, payloads),
        live_rows=sum(rows) - sum(deleted) if is_counted else None,
        apart_from_deletions=_common(columns, len(payloads), tombstones=_mentioned(encoded))
        if has_all_rows and is_addressable
        else None,
        some_have_deletions=bool(deleted),
    )


def of_each(payloads: Iterable[bytes], known: Survey | None) -> list[Traits]:
    """Return the traits of encoded fragments one by one."""
    common = None if known is None else known.apart_from_deletions
    found = []
    for payload in payloads:
        message = table_pb2.DataFragment.FromString(payload)
        if common is not None and not message.HasField("deletion_file"):
            found.append(common)
        else:
            found.append(_of_message(message, payload))
    return found


def of(value: Fragment) -> Traits:
    """Return the traits of a value, in which zero rows differ from an unknown count."""
    lacks_count = value.num_deleted_rows is None
    files = [
        (f.file_major_version, f.file_minor_version, f.file_size_bytes is None) for f in value.files
    ]
    return _interned(
        tuple(files),
        any(TOMBSTONE in f.fields for f in value.files),
        value.physical_rows is None,
        "none" if value.deletion_file is None else "uncounted" if lacks_count else "counted",
        value.live_rows == 0,
        value.row_ids is not None,
    )


def _of_message(message: table_pb2.DataFragment, payload: bytes) -> Traits:
    fragment.ensure_understood(message)
    rows, count = message.physical_rows, None
    if message.HasField("deletion_file"):
        count = message.deletion_file.num_deleted_rows
    files = [
        (f.file_major_version, f.file_minor_version, not f.file_size_bytes) for f in message.files
    ]
    return _interned(
        tuple(files),
        _mentioned(payload),
        not rows,
        "none" if count is None else "counted" if count else "uncounted",
        bool(rows) and rows == count,
        message.HasField("inline_row_ids") or message.HasField("external_row_ids"),
    )


def _mentioned(encoded: bytes) -> bool:
    return _TOMBSTONE_BYTES in encoded


def _ids(columns: _Columns, payloads: list[bytes]) -> list[FragmentId] | None:
    # The value 0 is not encoded, so it can only be recognized when it is the first.
    found = [FragmentId(i) for i in columns.id]
    starts_at_zero = (
        len(found) == len(payloads) - 1 and table_pb2.DataFragment.FromString(payloads[0]).id == 0
    )
    if starts_at_zero:
        found.insert(0, FragmentId(0))
    return (
        found if len(found) == len(payloads) and max(found, default=0) <= MAX_FRAGMENT_ID else None
    )


def _common(columns: _Columns, count: int, *, tombstones: bool) -> Traits | None:
    """Return the traits of fragments of one file each, all of the same version and complete."""
    files = columns.files
    numbers = {*zip(files.file_major_version, files.file_minor_version, strict=False)}
    counts = {len(files.path), len(files.file_major_version), len(files.file_minor_version)}
    sizes = list(files.file_size_bytes)
    row_ids = len(columns.inline_row_ids) + len(columns.external_row_ids)
    is_common = (
        not tombstones
        and counts == {count}
        and len(numbers) == 1
        and len(sizes) == count
        and min(sizes, default=0) > 0
        and row_ids in (0, count)
    )
    if not is_common:
        return None
    ((major, minor),) = numbers
    return _interned(((major, minor, False),), False, False, "none", False, row_ids > 0)


@cache
def _interned(
    files: tuple[tuple[int, int, bool], ...],
    tombstones: bool,
    lacks_rows: bool,
    deleted: _Deleted,
    is_empty: bool,
    has_row_ids: bool,
) -> Traits:
    return Traits(
        file_numbers=frozenset((major, minor) for major, minor, _ in files),
        has_several_files=len(files) > 1,
        lacks_file_size=any(lacks for *_, lacks in files),
        may_have_tombstones=tombstones,
        lacks_rows=lacks_rows,
        lacks_deleted_rows=deleted == "uncounted",
        has_deletions=deleted != "none",
        has_row_ids=has_row_ids,
        is_empty=is_empty,
    )
