"""Whether two transactions touch the same fragments or rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.format import deletion
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import (
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Project,
    Rewrite,
    Update,
    UpdateConfig,
)
from lancelake.format.operations.update import UpdateMode
from lancelake.format.operations.update_config import MapUpdate
from lancelake.txn import fragments, index_coverage
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    REBASE,
    Context,
    Incompatible,
    Rebasing,
    Retryable,
    RowOffsets,
    Verdict,
)

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


def on_same_fragments(mine: Ids, theirs: Ids, *, what: str) -> Verdict:
    """Return a retryable conflict when both refer to a fragment."""
    shared = mine & theirs
    return Retryable(f"{what} ({_listed(shared)})") if shared else OK


def on_same_rows(mine: Delete | Update, theirs: Delete | Update, context: Context) -> Verdict:
    """Check two changes of rows: compatible while they affect different rows of the same files."""
    ours, others = touched(mine), touched(theirs)
    shared = ours.all & others.all
    if not shared:
        return OK
    where = _listed(shared)
    if context.affected_rows is None or rewrites_columns(mine):
        return Retryable(f"both change rows of {where}")
    if shared & others.removed or not shared <= context.theirs_after.fragment_ids():
        return Retryable(f"rows of {where} were deleted")
    if not shared <= frozenset(context.affected_rows):
        return Retryable(f"both change rows of {where}")
    before, after = context.base.fragments_by_id(), context.theirs_after.fragments_by_id()
    if any(i in before and before[i].files != after[i].files for i in shared):
        return Retryable(f"columns of {where} were rewritten")
    return REBASE


def rewrites_columns(op: Delete | Update) -> bool:
    """Whether a change rewrites columns in place instead of moving rows."""
    return isinstance(op, Update) and op.update_mode is UpdateMode.REWRITE_COLUMNS


def covers_rewritten(indices: Iterable[IndexMetadata], gone: Ids) -> Verdict:
    """Return a conflict when an index covers rewritten fragments."""
    rewritten_ids = BitMap(gone)
    for index in indices:
        if index.is_system:
            continue
        covered = index.fragments()
        if covered is None:
            return Retryable(f"index {index.name!r} does not record which fragments it covers")
        if covered & rewritten_ids:
            where = _listed(frozenset(FragmentId(i) for i in covered & rewritten_ids))
            return Retryable(f"index {index.name!r} covers rewritten {where}")
    return OK


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
) -> Verdict:
    """Check an update against settings that other commits changed."""
    if mine is None:
        return OK
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    shared = changed if mine.replace else changed & mine.entries.keys()
    both_removed = {key for key in shared if key not in after and not mine.entries.get(key)}
    if clashing := shared - both_removed:
        return Incompatible(f"both set {', '.join(sorted(clashing))}")
    return OK


def upserts(values: Mapping[str, str]) -> MapUpdate | None:
    """Return settings as a config update."""
    return MapUpdate(entries=FrozenMap(dict(values))) if values else None


def as_bitmap(rows: RowOffsets) -> BitMap:
    """Return row offsets as a set."""
    if isinstance(rows, bytes):
        return deletion.decode_bitmap(rows, what="affected rows")
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
    fragments.ensure_known(named, current, what="the change of rows")
    fitted = fragments.on_current_files(updated, current, before.schema.by_id())
    after = head.fragments.exchanged(fitted, removed=removed).appended(added)
    indices = index_coverage.retained(head.indices, before.schema, after.ids)
    return TableState(manifest=replace(before, fragments=after), indices=indices)


def rebased_rows(
    updated: tuple[Fragment, ...], removed: tuple[FragmentId, ...], rebasing: Rebasing
) -> RebasedRows | Retryable:
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
        if isinstance(united, Retryable):
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


def _united(mine: Fragment, head: Fragment, rebasing: Rebasing) -> Fragment | Retryable | None:
    if _takes_a_deleted_row(head, rebasing):
        return _same_row(mine.id)
    rows = rebasing.port.load_deletions(head) | as_bitmap(_affected(mine.id, rebasing))
    if mine.physical_rows is not None and len(rows) >= mine.physical_rows:
        return None
    read_version = Version(rebasing.head.manifest.version)
    file = rebasing.port.store_deletions(mine.id, rows, read_version)
    return replace(mine, deletion_file=file)


def _takes_a_deleted_row(head: Fragment, rebasing: Rebasing) -> bool:
    mine = as_bitmap(_affected(head.id, rebasing))
    return bool(rebasing.port.load_deletions(head) & mine)


def _affected(fragment_id: FragmentId, rebasing: Rebasing) -> RowOffsets:
    return () if rebasing.affected_rows is None else rebasing.affected_rows.get(fragment_id, ())


def _same_row(fragment_id: FragmentId) -> Retryable:
    return Retryable(f"both changed the same row of fragment {fragment_id}")
