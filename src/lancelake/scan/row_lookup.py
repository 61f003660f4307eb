"""Lookup of row addresses by row id."""

from __future__ import annotations

import numpy as np

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import known_deletions
from lancelake.data.row_meta import RowMeta
from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.row_address import fragment_of, offset_of, row_addresses
from lancelake.format.rowids.lookup import find
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.count import physical_rows

MISSING = np.uint64((1 << 64) - 1)
"""Address of a row that does not exist."""


def addresses_of(snapshot: Snapshot, row_ids: U64Array) -> U64Array:
    """Return the address of each row, in request order; `MISSING` for rows that do not exist.

    Without stable row ids the ids are the addresses. An offset outside of its fragment raises an
    error; a row that is deleted, or whose fragment is not part of the version, is missing.
    """
    unique, inverse = np.unique(row_ids, return_inverse=True)
    stable = snapshot.manifest.has_stable_row_ids
    found = _by_id(snapshot, unique) if stable else _by_address(snapshot, unique)
    return found[inverse]


def live_addresses(snapshot: Snapshot, addresses: U64Array) -> U64Array:
    """Return the addresses, with `MISSING` for rows that are deleted or never existed."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    return _by_address(snapshot, unique)[inverse]


def _by_id(snapshot: Snapshot, ids: U64Array) -> U64Array:
    """Find stable ids; a moved row leaves its id behind on a deleted one."""
    out = np.full(len(ids), MISSING, np.uint64)
    for fragment in snapshot.manifest.fragments:
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        meta = RowMeta(snapshot.files, fragment, rows, has_stable_row_ids=True)
        positions, offsets = find(meta.row_id_sequence(), ids)
        if len(positions):
            live = _live(snapshot, fragment, offsets)
            out[positions[live]] = row_addresses(fragment.id, offsets[live])
    return out


def _by_address(snapshot: Snapshot, addresses: U64Array) -> U64Array:
    out = np.full(len(addresses), MISSING, np.uint64)
    numbers = fragment_of(addresses)
    for fragment in snapshot.manifest.fragments:
        low, high = np.searchsorted(numbers, [fragment.id, fragment.id + 1])
        if low == high:
            continue
        offsets = offset_of(addresses[low:high])
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        if int(offsets[-1]) >= rows:
            problem = (
                f"row {int(offsets[-1])} of fragment {fragment.id} was asked for, "
                f"which has {rows} rows"
            )
            raise InvalidRequestError(problem, table=snapshot.files.root.uri)
        live = _live(snapshot, fragment, offsets)
        out[low:high][live] = addresses[low:high][live]
    return out


def _live(snapshot: Snapshot, fragment: Fragment, offsets: U64Array) -> np.ndarray:
    if fragment.deletion_file is None:
        return np.ones(len(offsets), np.bool_)
    deleted = known_deletions(snapshot.files, fragment)
    gone = np.frombuffer(deleted.to_array(), dtype=np.uint32)
    return ~np.isin(offsets, gone)
