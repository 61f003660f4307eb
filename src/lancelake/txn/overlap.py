"""What operations have in common: fragments, rows, keys, and the index entries that cover them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format.deletion import decode_bitmap
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId, FragmentId, Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations import (
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Project,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateConfig,
    UpdateMode,
)
from lancelake.format.schema import Schema
from lancelake.txn import rules
from lancelake.txn.fragments import ensure_known, has_hidden_moves, on_current_files
from lancelake.txn.options import TableState

Ids = frozenset[FragmentId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Existing fragments that a change updates or removes."""

    updated: Ids
    removed: Ids

    @property
    def all(self) -> Ids:
        """Updated and removed fragments."""
        return self.updated | self.removed


def touched(op: Delete | Update) -> Touched:
    """Return the fragments whose rows a change deletes or moves."""
    removed = op.deleted_fragment_ids if isinstance(op, Delete) else op.removed_fragment_ids
    updated = frozenset(f.id for f in op.updated_fragments)
    return Touched(updated=updated, removed=frozenset(removed))


def rewritten(op: Rewrite) -> Ids:
    """Return the fragments that a rewrite replaces."""
    return frozenset(f.id for g in op.groups for f in g.old_fragments)


def replaced(op: DataReplacement) -> Ids:
    """Return the fragments of which a column is replaced."""
    return frozenset(r.fragment_id for r in op.replacements)


def replaced_fields(op: DataReplacement) -> frozenset[FieldId]:
    """Return the fields whose columns are replaced."""
    return frozenset(f for r in op.replacements for f in r.new_file.fields)


def on_same_fragments(mine: Ids, theirs: Ids, *, what: str) -> rules.Verdict:
    """Return a retryable conflict when both refer to a fragment."""
    shared = mine & theirs
    return rules.Retryable(f"{what} ({_listed(shared)})") if shared else rules.OK


def on_same_rows(
    mine: Delete | Update, theirs: Delete | Update, context: rules.Context
) -> rules.Verdict:
    """Check two changes of rows: compatible while they affect different rows of the same files."""
    ours, others = touched(mine), touched(theirs)
    shared = ours.all & others.all
    if not shared:
        return rules.OK
    where = _listed(shared)
    if context.affected_rows is None or rewrites_columns(mine):
        return rules.Retryable(f"both change rows of {where}")
    if shared & others.removed or not shared <= context.theirs_after.fragment_ids():
        return rules.Retryable(f"rows of {where} were deleted")
    if not shared <= frozenset(context.affected_rows):
        return rules.Retryable(f"both change rows of {where}")
    before, after = context.base.fragments_by_id(), context.theirs_after.fragments_by_id()
    if any(i in before and before[i].files != after[i].files for i in shared):
        return rules.Retryable(f"columns of {where} were rewritten")
    return rules.REBASE


def rewrites_columns(op: Delete | Update) -> bool:
    """Whether a change rewrites columns in place instead of moving rows."""
    return isinstance(op, Update) and op.update_mode is UpdateMode.REWRITE_COLUMNS


def covers_rewritten(indices: Iterable[IndexMetadata], gone: Ids) -> rules.Verdict:
    """Return a conflict when an index covers rewritten fragments."""
    rewritten_ids = BitMap(gone)
    for index in indices:
        if index.is_system:
            continue
        covered = index.fragments()
        if covered is None:
            return rules.Retryable(
                f"index {index.name!r} does not record which fragments it covers"
            )
        if covered & rewritten_ids:
            where = _listed(frozenset(FragmentId(i) for i in covered & rewritten_ids))
            return rules.Retryable(f"index {index.name!r} covers rewritten {where}")
    return rules.OK


def indexed_fields(op: CreateIndex) -> frozenset[FieldId]:
    """Return the fields of new indices."""
    return frozenset(f for i in op.new_indices for f in i.fields)


def changes_field_rules(theirs: Merge | Project) -> bool:
    """Whether rows that were valid before may not be valid under the other schema."""
    return not theirs.preserves_nullability


def touches_schema(op: UpdateConfig) -> bool:
    """Whether the metadata of the schema or of a field changes."""
    return op.schema_metadata is not None or bool(op.field_metadata)


def on_same_keys(mine: MapUpdate | None, theirs: MapUpdate | None) -> frozenset[str]:
    """Return the keys that one sets and the other sets or removes."""
    if mine is None or theirs is None:
        return frozenset()
    shared = mine.entries.keys() & theirs.entries.keys()
    return frozenset(k for k in shared if not _both_remove(k, mine, theirs))


def on_same_settings(
    mine: MapUpdate | None, before: Mapping[str, str], after: Mapping[str, str]
) -> rules.Verdict:
    """Check an update against settings that other commits changed."""
    if mine is None:
        return rules.OK
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    shared = changed if mine.replace else changed & mine.entries.keys()
    both_removed = {key for key in shared if key not in after and not mine.entries.get(key)}
    if clashing := shared - both_removed:
        return rules.Incompatible(f"both set {', '.join(sorted(clashing))}")
    return rules.OK


def upserts(values: Mapping[str, str]) -> MapUpdate | None:
    """Return settings as a config update."""
    return MapUpdate(entries=FrozenMap(dict(values))) if values else None


def as_bitmap(rows: rules.RowOffsets) -> BitMap:
    """Return row offsets as a set."""
    if isinstance(rows, bytes):
        return decode_bitmap(rows, what="affected rows")
    return BitMap(rows)


def _both_remove(key: str, mine: MapUpdate, theirs: MapUpdate) -> bool:
    return mine.entries[key] is None and theirs.entries[key] is None


def _listed(ids: Ids) -> str:
    numbers = ", ".join(str(i) for i in sorted(ids))
    return f"fragment{'s' if len(ids) > 1 else ''} {numbers}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebasedRows:
    """Fragments that lose rows, and those that lose all."""

    updated: tuple[Fragment, ...]
    removed: tuple[FragmentId, ...]


def changed_rows(
    head: TableState,
    *,
    updated: tuple[Fragment, ...],
    removed: tuple[FragmentId, ...],
    added: tuple[Fragment, ...] = (),
) -> TableState:
    """Replace fragments, and keep the index entries that are still valid."""
    before = head.manifest
    current = head.fragments_by_id()
    named = (*(f.id for f in updated), *removed)
    ensure_known(named, current, what="the change of rows")
    fitted = on_current_files(updated, current, before.schema.by_id())
    after = head.fragments.exchanged(fitted, removed=removed).appended(added)
    indices = retained(head.indices, before.schema, after.ids)
    return TableState(manifest=replace(before, fragments=after), indices=indices)


def rebased_rows(
    updated: tuple[Fragment, ...], removed: tuple[FragmentId, ...], rebasing: rules.Rebasing
) -> RebasedRows | rules.Retryable:
    """Merge my deletions with those of the head; a row deleted by both is a conflict."""
    before, after = rebasing.base.fragments_by_id(), rebasing.head.fragments_by_id()
    emptied: list[FragmentId] = list(removed)
    carried: list[Fragment] = []
    for fragment_id in _deleted_from_since(removed, before, after):
        if _takes_a_deleted_row(after[fragment_id], rebasing):
            return _same_row(fragment_id)
    for fragment in updated:
        if fragment.id not in set(_deleted_from_since((fragment.id,), before, after)):
            carried.append(fragment)
            continue
        united = _united(fragment, after[fragment.id], rebasing)
        if isinstance(united, rules.Retryable):
            return united
        if united is None:
            emptied.append(fragment.id)
        else:
            carried.append(united)
    return RebasedRows(updated=tuple(carried), removed=tuple(emptied))


def _deleted_from_since(
    ids: Iterable[FragmentId],
    before: Mapping[FragmentId, Fragment],
    after: Mapping[FragmentId, Fragment],
) -> tuple[FragmentId, ...]:
    return tuple(
        i
        for i in ids
        if i in before and i in after and before[i].deletion_file != after[i].deletion_file
    )


def _united(
    mine: Fragment, head: Fragment, rebasing: rules.Rebasing
) -> Fragment | rules.Retryable | None:
    if _takes_a_deleted_row(head, rebasing):
        return _same_row(mine.id)
    rows = rebasing.port.load_deletions(head) | as_bitmap(_affected(mine.id, rebasing))
    if mine.physical_rows is not None and len(rows) >= mine.physical_rows:
        return None
    read_version = Version(rebasing.head.manifest.version)
    file = rebasing.port.store_deletions(mine.id, rows, read_version)
    return replace(mine, deletion_file=file)


def _takes_a_deleted_row(head: Fragment, rebasing: rules.Rebasing) -> bool:
    mine = as_bitmap(_affected(head.id, rebasing))
    return bool(rebasing.port.load_deletions(head) & mine)


def _affected(fragment_id: FragmentId, rebasing: rules.Rebasing) -> rules.RowOffsets:
    return () if rebasing.affected_rows is None else rebasing.affected_rows.get(fragment_id, ())


def _same_row(fragment_id: FragmentId) -> rules.Retryable:
    return rules.Retryable(f"both changed the same row of fragment {fragment_id}")


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
    if has_hidden_moves(indices):
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
