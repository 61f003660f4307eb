"""Lookup of row addresses by row id."""

from __future__ import annotations

import numpy as np

from lancelake.data.deletion_files import known_deletions
from lancelake.data.row_meta import RowMeta, row_addresses
from lancelake.data.scan_source import ScanSource
from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.rowids.lookup import find
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.count import physical_rows

_FRAGMENT_SHIFT = np.uint64(32)
_OFFSET_MASK = np.uint64((1 << 32) - 1)
MISSING = np.uint64((1 << 64) - 1)
"""Address of a row that does not exist."""


def addresses_of(source: ScanSource, row_ids: U64Array) -> U64Array:
    """Return the address of each row, in request order; `MISSING` for rows that do not exist.

    Without stable row ids the ids are the addresses. An offset outside of its fragment raises an
    error; a row that is deleted, or whose fragment is not part of the version, is missing.
    """
    unique, inverse = np.unique(row_ids, return_inverse=True)
    stable = source.manifest.has_stable_row_ids
    found = _by_id(source, unique) if stable else _by_address(source, unique)
    return found[inverse]


def live_addresses(source: ScanSource, addresses: U64Array) -> U64Array:
    """Return the addresses, with `MISSING` for rows that are deleted or never existed."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    return _by_address(source, unique)[inverse]


def fragment_of(addresses: U64Array) -> U64Array:
    """Return the fragment ids of addresses."""
    return addresses >> _FRAGMENT_SHIFT


def offset_of(addresses: U64Array) -> U64Array:
    """Return the row offsets of addresses."""
    return addresses & _OFFSET_MASK


def _by_id(source: ScanSource, ids: U64Array) -> U64Array:
    """Find stable ids; a moved row leaves its id behind on a deleted one."""
    out = np.full(len(ids), MISSING, np.uint64)
    for fragment in source.manifest.fragments:
        rows = physical_rows(source.files, source.manifest_at, fragment)
        meta = RowMeta(source.files, fragment, rows, has_stable_row_ids=True)
        positions, offsets = find(meta.row_id_sequence(), ids)
        if len(positions):
            live = _live(source, fragment, offsets)
            out[positions[live]] = row_addresses(fragment.id, offsets[live])
    return out


def _by_address(source: ScanSource, addresses: U64Array) -> U64Array:
    out = np.full(len(addresses), MISSING, np.uint64)
    numbers = fragment_of(addresses)
    for fragment in source.manifest.fragments:
        low, high = np.searchsorted(numbers, [fragment.id, fragment.id + 1])
        if low == high:
            continue
        offsets = offset_of(addresses[low:high])
        rows = physical_rows(source.files, source.manifest_at, fragment)
        if int(offsets[-1]) >= rows:
            problem = (
                f"row {int(offsets[-1])} of fragment {fragment.id} was asked for, "
                f"which has {rows} rows"
            )
            raise InvalidRequestError(problem, table=source.files.root.uri)
        live = _live(source, fragment, offsets)
        out[low:high][live] = addresses[low:high][live]
    return out


def _live(source: ScanSource, fragment: Fragment, offsets: U64Array) -> np.ndarray:
    if fragment.deletion_file is None:
        return np.ones(len(offsets), np.bool_)
    deleted = known_deletions(source.files, fragment)
    gone = np.frombuffer(deleted.to_array(), dtype=np.uint32)
    return ~np.isin(offsets, gone)
