"""Index coverage: entries and fragments that indices keep after a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import BaseId, FieldId, FragmentId
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations.rewrite import RewriteGroup, RewrittenIndex
from lancelake.format.schema import Schema
from lancelake.txn import fragment_reuse

Indices = tuple[IndexMetadata, ...]

_ADDRESS_KINDS = frozenset({"zonemapindexdetails", "bloomfilterindexdetails"})
_BTREE_OF_ADDRESSES = 1


def with_coverage(index: IndexMetadata, covered: BitMap) -> IndexMetadata:
    """Return the entry for other fragments."""
    return replace(index, fragment_bitmap=bytes(covered.serialize()))


def retained(indices: Indices, schema: Schema, fragments: Iterable[FragmentId]) -> Indices:
    """Keep the entries whose fields exist, and the useful segments of each index.

    A segment that covers no fragment is dropped when others of its name remain. The last one
    stays, so that the index continues to exist.
    """
    fields = schema.by_id()
    existing = BitMap(fragments)
    remaining = [i for i in indices if i.is_system or all(f in fields for f in i.fields)]
    if fragment_reuse.has_hidden_moves(indices):
        return tuple(remaining)
    useless = set()
    by_name = sorted(remaining, key=lambda i: i.name)
    for _, entries in groupby(by_name, key=lambda i: i.name):
        useless |= {i.uuid for i in _useless(tuple(entries), existing)}
    return tuple(i for i in remaining if i.uuid not in useless)


def without_fragments(
    indices: Indices, fields: Collection[FieldId], fragments: Iterable[FragmentId]
) -> Indices:
    """Remove fragments from the coverage of indices on any of these fields."""
    gone = BitMap(fragments)

    def pruned(index: IndexMetadata) -> IndexMetadata:
        covered = index.fragments()
        if covered is None or not covered & gone or not any(f in fields for f in index.fields):
            return index
        return with_coverage(index, covered - gone)

    return tuple(pruned(i) for i in indices) if gone else indices


def with_members(schema: Schema, fields: Iterable[FieldId]) -> set[FieldId]:
    """Return fields and all that is inside of them: an index may be on a field of a struct."""
    by_id = schema.by_id()
    return {node.id for f in fields for node in (by_id[f].walk() if f in by_id else ())}


def without_changed_columns(
    indices: Indices,
    schema: Schema,
    *,
    before: Mapping[FragmentId, Fragment],
    after: Mapping[FragmentId, Fragment],
) -> Indices:
    """Remove fragments from the coverage of indices whose column is stored in other files now."""
    fields = schema.by_id()

    def pruned(index: IndexMetadata) -> IndexMetadata:
        covered = index.fragments()
        if covered is None:
            return index
        columns = {n.id for f in index.fields if f in fields for n in fields[f].walk()}
        shared = (FragmentId(i) for i in covered if i in before and i in after)
        moved = [i for i in shared if _places(before[i], columns) != _places(after[i], columns)]
        return with_coverage(index, covered - BitMap(moved)) if moved else index

    return tuple(pruned(i) for i in indices)


def extended_by_moved_rows(
    indices: Indices,
    *,
    sources: Collection[FragmentId],
    moved_to: Iterable[FragmentId],
    changed_fields: Collection[FieldId],
) -> Indices:
    """Extend indices on unchanged columns to the fragments that their rows moved to."""
    needed, targets = BitMap(sources), BitMap(moved_to)

    def extended(index: IndexMetadata) -> IndexMetadata:
        covered = index.fragments()
        if (
            covered is None
            or holds_addresses(index)
            or any(f in changed_fields for f in index.fields)
            or not needed <= covered
        ):
            return index
        return with_coverage(index, covered | targets)

    return tuple(extended(i) for i in indices) if targets else indices


def after_rewrite(
    indices: Indices,
    groups: Sequence[RewriteGroup],
    rewritten: Sequence[RewrittenIndex],
    *,
    stable_row_ids: bool,
    records_moves: bool = False,
) -> Indices:
    """Replace remapped segments, and update the coverage of others where row ids are stable.

    With stable row ids, an index of addresses that was not remapped loses the fragments; without
    them, only fragments that were remapped or recorded for later can have been covered.
    Zones do not follow recorded moves: release 4.0.2 would lose the rows.
    """
    by_id = {r.old_id: r for r in rewritten}
    if len(by_id) < len(rewritten):
        raise InvalidRequestError("a rewrite lists an index twice")

    def followed(index: IndexMetadata) -> IndexMetadata:
        entry = by_id.get(index.uuid)
        if entry is not None:
            return _remapped(index, entry, groups)
        covered = index.fragments()
        if covered is not None and records_moves and _has_zones(index):
            after = _swapped(index, covered, groups, forget=True)
            return index if after == covered else with_coverage(index, after)
        if covered is None or not stable_row_ids:
            return index
        after = _swapped(index, covered, groups, forget=holds_addresses(index))
        return index if after == covered else with_coverage(index, after)

    return tuple(followed(i) for i in indices)


def with_fragment_reuse(indices: Indices, entry: IndexMetadata | None) -> Indices:
    """Add the entry that maps old addresses to new ones."""
    if entry is None:
        return indices
    return (*(i for i in indices if i.name != FRAGMENT_REUSE), entry)


def holds_addresses(index: IndexMetadata) -> bool:
    """Whether an index stores addresses although the table has stable row ids."""
    kind = None if index.details is None else index.details.kind
    if kind == "btreeindexdetails":
        return (index.index_version or 0) >= _BTREE_OF_ADDRESSES
    return kind in _ADDRESS_KINDS


def _has_zones(index: IndexMetadata) -> bool:
    return index.details is not None and index.details.kind in _ADDRESS_KINDS


def _remapped(
    index: IndexMetadata, entry: RewrittenIndex, groups: Sequence[RewriteGroup]
) -> IndexMetadata:
    covered = index.fragments()
    if covered is None:
        msg = f"index {index.name!r} was rewritten but does not state which fragments it covers"
        raise InvalidRequestError(msg, index=index.name)
    swapped = with_coverage(index, _swapped(index, covered, groups, forget=False))
    # The new files are in the table itself, also where the old ones belong to another one.
    return replace(swapped, uuid=entry.new_id, files=entry.new_index_files, base_id=None)


def _useless(entries: Indices, existing: BitMap) -> Indices:
    if len(entries) == 1 or entries[0].is_system:
        return ()
    empty = [i for i in entries if _covers_nothing(i, existing)]
    if len(empty) < len(entries):
        return tuple(empty)
    keep = min(empty, key=lambda i: i.dataset_version)
    return tuple(i for i in empty if i is not keep)


def _covers_nothing(index: IndexMetadata, existing: BitMap) -> bool:
    covered = index.fragments()
    return covered is not None and not covered & existing


def _places(fragment: Fragment, columns: set[FieldId]) -> set[tuple[BaseId | None, str]]:
    return {(f.base_id, f.path) for f in fragment.files if not columns.isdisjoint(f.fields)}


def _swapped(
    index: IndexMetadata, covered: BitMap, groups: Sequence[RewriteGroup], *, forget: bool
) -> BitMap:
    result = BitMap(covered)
    for group in groups:
        old = BitMap(f.id for f in group.old_fragments)
        if not old & covered:
            continue
        if not old <= covered and not forget:
            msg = (
                f"index {index.name!r} covers some but not all of the fragments "
                f"{sorted(old)} that were rewritten together"
            )
            raise InvalidRequestError(msg, index=index.name)
        result -= old
        if not forget:
            result |= BitMap(f.id for f in group.new_fragments)
    return result
