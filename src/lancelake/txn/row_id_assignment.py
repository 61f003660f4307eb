"""Assignment of stable row ids and row versions to new fragments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.ids import Version
from lancelake.format.rowids import (
    UNKNOWN_VERSION,
    Range,
    RowIdSequence,
    Segment,
    U64Array,
    VersionSequence,
)

_MAX_ROW_ID = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Fragments with row ids, and the next free row id."""

    fragments: tuple[Fragment, ...]
    next_row_id: int


def for_new_rows(fragments: Iterable[Fragment], *, next_row_id: int, version: Version) -> Assigned:
    """Assign ids to rows without them; all rows are created in this version."""
    assigned: list[Fragment] = []
    for fragment in fragments:
        rows = physical_rows(fragment)
        ids, next_row_id = _completed(fragment, rows, next_row_id)
        versions = VersionSequence.constant(version, rows=rows).encode()
        assigned.append(
            replace(
                fragment,
                row_ids=ids,
                created_at_versions=versions,
                last_updated_at_versions=versions,
            )
        )
    return Assigned(fragments=tuple(assigned), next_row_id=next_row_id)


def for_moved_rows(
    fragments: Iterable[Fragment],
    *,
    sources: Sequence[Fragment],
    next_row_id: int,
    version: Version,
) -> Assigned:
    """Assign ids to rows without them; rows moved from `sources` keep their creation version."""
    assigned: list[Fragment] = []
    births = _births(sources)
    for fragment in fragments:
        rows = physical_rows(fragment)
        ids, next_row_id = _completed(fragment, rows, next_row_id)
        given = _values(ids, rows)
        assigned.append(
            replace(
                fragment,
                row_ids=ids,
                created_at_versions=_runs(_looked_up(given, births, version)).encode(),
                last_updated_at_versions=VersionSequence.constant(version, rows=rows).encode(),
            )
        )
    return Assigned(fragments=tuple(assigned), next_row_id=next_row_id)


def ensure_free(added: Iterable[Fragment], existing: Iterable[Fragment]) -> None:
    """Raise when new rows have ids of existing rows."""
    given = [row_id_values(f) for f in added if f.row_ids is not None]
    if not given:
        return
    taken = np.concatenate([row_id_values(f) for f in existing] or [given[0][:0]])
    shared = np.intersect1d(np.concatenate(given), taken)
    if len(shared):
        raise InvalidRequestError(f"row id {int(shared[0])} is taken", row_id=int(shared[0]))


def has_all_row_ids(fragment: Fragment) -> bool:
    """Whether every row of a new fragment has an id, so that all were moved."""
    if fragment.row_ids is None or fragment.physical_rows is None:
        return False
    return _length(_segments(fragment.row_ids)) == fragment.physical_rows


def touched_in(fragment: Fragment, version: Version) -> Fragment:
    """Mark all rows of a fragment as updated in this version."""
    if fragment.row_ids is None:
        return fragment
    rows = physical_rows(fragment)
    mark = VersionSequence.constant(version, rows=rows).encode()
    return replace(fragment, last_updated_at_versions=mark)


def touched_rows(fragment: Fragment, rows: BitMap, version: Version) -> Fragment:
    """Mark some rows of a fragment as updated in this version."""
    if fragment.row_ids is None:
        return fragment
    count = physical_rows(fragment)
    versions = _versions(fragment.last_updated_at_versions, count).values()
    offsets = np.array(rows.to_array(), dtype=np.int64)
    if len(offsets) and int(offsets.max()) >= count:
        msg = f"row {int(offsets.max())} of fragment {fragment.id} was updated; it has {count} rows"
        raise InvalidRequestError(msg, fragment=fragment.id)
    versions[offsets] = version
    return replace(fragment, last_updated_at_versions=_runs(versions).encode())


def physical_rows(fragment: Fragment) -> int:
    """Return the row count, which a fragment with row ids must state."""
    if fragment.physical_rows is None:
        msg = f"fragment {fragment.id} has no row count"
        raise InvalidRequestError(msg, fragment=fragment.id)
    return fragment.physical_rows


def row_id_ranges(fragments: Iterable[Fragment]) -> list[Range] | None:
    """Return the row ids of fragments as ranges, in order of ids; None if they are not ranges."""
    shared: list[Range] = []
    for fragment in fragments:
        for part in _segments(fragment.row_ids):
            if not isinstance(part, Range):
                return None
            if part.end > part.start:
                shared.append(part)
    return sorted(shared, key=lambda part: part.start)


def row_id_values(fragment: Fragment) -> U64Array:
    """Return the row ids of a fragment in row order."""
    parts = [rowids.segment_values(s) for s in _segments(fragment.row_ids)]
    return np.concatenate(parts) if parts else np.array([], dtype=np.uint64)


def row_id_count(fragment: Fragment) -> int:
    """Count the row ids of a fragment."""
    return _length(_segments(fragment.row_ids))


def _completed(fragment: Fragment, rows: int, next_row_id: int) -> tuple[bytes, int]:
    given = _segments(fragment.row_ids)
    missing = rows - _length(given)
    if missing < 0:
        msg = f"fragment {fragment.id} has {_length(given)} row ids for {rows} rows"
        raise InvalidRequestError(msg, found=_length(given), expected=rows)
    if missing == 0 and isinstance(fragment.row_ids, bytes):
        return fragment.row_ids, next_row_id
    end = next_row_id + missing
    if end > _MAX_ROW_ID:
        raise InvalidRequestError(
            f"the table has no row ids left: the next is {next_row_id}",
            action="Write its rows to another table.",
        )
    fresh = Range(start=next_row_id, end=end)
    return rowids.encode_row_ids(_joined(given, fresh)), end


def _joined(given: tuple[Segment, ...], fresh: Range) -> tuple[Segment, ...]:
    if given and isinstance(given[-1], Range) and given[-1].end == fresh.start:
        return (*given[:-1], Range(start=given[-1].start, end=fresh.end))
    return (*given, fresh)


def _segments(encoded: Sequenced) -> tuple[Segment, ...]:
    match encoded:
        case None:
            return ()
        case bytes():
            return rowids.decode_row_ids(encoded)
        case ExternalFile():
            raise UnsupportedError("row ids outside the manifest are not supported")


def _length(segments: tuple[Segment, ...]) -> int:
    return sum(rowids.length(s) for s in segments)


def _values(encoded: bytes, rows: int) -> U64Array:
    return RowIdSequence.decode(encoded, physical_rows=rows).values()


def _births(sources: Sequence[Fragment]) -> tuple[U64Array, U64Array]:
    """Row ids of the sources in ascending order, and the version each was created in."""
    ids = [row_id_values(f) for f in sources]
    versions = [_versions(f.created_at_versions, physical_rows(f)).values() for f in sources]
    if not ids:
        nothing = np.array([], dtype=np.uint64)
        return nothing, nothing
    all_ids, all_versions = np.concatenate(ids), np.concatenate(versions)
    order = np.argsort(all_ids, kind="stable")
    return all_ids[order], all_versions[order]


def _versions(encoded: Sequenced, rows: int) -> VersionSequence:
    if isinstance(encoded, bytes):
        return VersionSequence.decode(encoded, physical_rows=rows)
    return VersionSequence.constant(UNKNOWN_VERSION, rows=rows)


def _looked_up(ids: U64Array, births: tuple[U64Array, U64Array], version: Version) -> U64Array:
    born, born_in = births
    versions = np.full(len(ids), version, dtype=np.uint64)
    if len(born):
        at = np.minimum(np.searchsorted(born, ids), len(born) - 1)
        hit = born[at] == ids
        versions[hit] = born_in[at[hit]]
    return versions


def _runs(versions: U64Array) -> VersionSequence:
    if len(versions) == 0:
        return VersionSequence(())
    starts = np.flatnonzero(np.concatenate(([True], versions[1:] != versions[:-1])))
    counts = np.diff(np.append(starts, len(versions)))
    return VersionSequence(
        tuple((int(c), int(versions[s])) for c, s in zip(counts, starts, strict=True))
    )
