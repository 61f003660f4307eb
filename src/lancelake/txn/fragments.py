"""Fragments of the next version: their numbers, the ids of their rows, and where rows moved to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.frozen import parse
from lancelake.format.ids import TOMBSTONE, FieldId, FragmentId, Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.manifest import Manifest
from lancelake.format.rowids import (
    UNKNOWN_VERSION,
    Range,
    RowIdSequence,
    Segment,
    U64Array,
    VersionSequence,
)
from lancelake.proto import table_pb2

MAX_FRAGMENT_ID = FragmentId((1 << 32) - 1)


def ensure_id(fragment_id: int) -> FragmentId:
    """Return a valid fragment id; raise if there are none left."""
    if fragment_id > MAX_FRAGMENT_ID:
        raise InvalidRequestError(
            f"the table has no fragment ids left: the highest is {MAX_FRAGMENT_ID}",
            action="Write its rows to another table.",
        )
    return FragmentId(fragment_id)


def next_id(manifest: Manifest) -> int:
    """Return the first fragment id that was never used."""
    return 0 if manifest.max_fragment_id is None else manifest.max_fragment_id + 1


def numbered(fragments: Iterable[Fragment], first: int) -> tuple[Fragment, ...]:
    """Give ids to the fragments that have none (0); other ids are kept."""
    numbered: list[Fragment] = []
    for fragment in fragments:
        if fragment.id == 0:
            numbered.append(replace(fragment, id=ensure_id(first)))
            first += 1
        else:
            numbered.append(fragment)
    return tuple(numbered)


def renumbered(fragments: Iterable[Fragment], first: int) -> tuple[Fragment, ...]:
    """Give consecutive ids to all fragments."""
    return tuple(replace(f, id=ensure_id(first + n)) for n, f in enumerate(fragments))


def without_dead_files(fragment: Fragment) -> Fragment:
    """Remove the files whose columns were all replaced."""
    if not any(TOMBSTONE in f.fields for f in fragment.files):
        return fragment
    files = tuple(f for f in fragment.files if any(i != TOMBSTONE for i in f.fields))
    return replace(fragment, files=files)


def without_dropped_files(fragment: Fragment, fields: Collection[FieldId]) -> Fragment:
    """Remove the files that have no column of the schema."""
    files = tuple(f for f in fragment.files if any(i in fields for i in f.fields))
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)


def on_current_files(
    updated: Iterable[Fragment], head: Mapping[FragmentId, Fragment], fields: Collection[FieldId]
) -> tuple[Fragment, ...]:
    """Remove files from mine that were dropped with their columns."""
    return tuple(_on_current_files(f, head.get(f.id), fields) for f in updated)


def ensure_known(ids: Iterable[FragmentId], existing: Collection[FragmentId], *, what: str) -> None:
    """Raise for a fragment that the table does not have."""
    for each in ids:
        if each not in existing:
            msg = f"{what} refers to fragment {each}, which the table does not have"
            raise InvalidRequestError(msg, fragment=each)


def _on_current_files(
    fragment: Fragment, current: Fragment | None, fields: Collection[FieldId]
) -> Fragment:
    paths = set() if current is None else {f.path for f in current.files}
    files = tuple(
        f for f in fragment.files if f.path in paths or any(i in fields for i in f.fields)
    )
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)


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


Indices = tuple[IndexMetadata, ...]
Move = tuple[BitMap, BitMap]
"""Compacted fragments, and those that have their rows."""


def follow_moves(indices: Indices) -> Indices:
    """Update index coverage to the fragments that have the rows now."""
    moves = list_moves(indices)
    return tuple(_followed(i, moves) for i in indices) if moves else indices


def has_hidden_moves(indices: Indices) -> bool:
    """Whether the moves are stored in a file, so that coverage cannot be updated."""
    details = reuse_details(indices)
    return details is not None and details.WhichOneof("content") == "external"


def list_moves(indices: Indices) -> list[Move]:
    """Return the moves recorded in index entries, oldest first."""
    details = reuse_details(indices)
    if details is None:
        return []
    return [
        (BitMap(f.id for f in group.old_fragments), BitMap(f.id for f in group.new_fragments))
        for version in details.inline.versions
        for group in version.groups
    ]


def fragments_after(fragments: BitMap, moves: Sequence[Move]) -> BitMap:
    """Return the fragments that have the rows of others now."""
    now = BitMap(fragments)
    for old, new in moves:
        if not old & now:
            continue
        # Covered and uncovered rows of a partly covered group cannot be distinguished.
        now = (now - old) | new if old <= now else now - old
    return now


def reuse_details(indices: Indices) -> table_pb2.FragmentReuseIndexDetails | None:
    """Return the record of moved rows among index entries; None if there is none."""
    entry = next((i for i in indices if i.name == FRAGMENT_REUSE), None)
    if entry is None or entry.details is None:
        return None
    message = table_pb2.FragmentReuseIndexDetails()
    parse(message, entry.details.value, what="fragment reuse details")
    return message


def _followed(index: IndexMetadata, moves: Sequence[Move]) -> IndexMetadata:
    covered = index.fragments()
    if covered is None or index.is_system:
        return index
    now = fragments_after(covered, moves)
    return index if now == covered else replace(index, fragment_bitmap=bytes(now.serialize()))
