"""Rules of the operations that replace files: DataReplacement, Rewrite and CreateIndex."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.format.index_meta import FRAGMENT_REUSE, MEM_WAL, IndexMetadata, MergedGeneration
from lancelake.format.operations import Replacement, RewriteGroup
from lancelake.txn import fragments, merged_generations, overlap, rules
from lancelake.txn.options import TableState


def apply_data_replacement(
    op: ops.DataReplacement, head: TableState, target: rules.VersionTarget
) -> TableState:
    """Replace the files; indices on their columns lose the fragments."""
    _ensure_one_file_each(op)
    current = head.fragments_by_id()
    fragments.ensure_known(overlap.replaced(op), current, what="the replacement of data")
    swapped = (_replaced(current[r.fragment_id], r) for r in op.replacements)
    updated = [fragments.touched_in(f, target.version) for f in swapped]
    after = head.fragments.exchanged(updated)
    changed = [f.id for f in updated]
    indices = overlap.without_fragments(head.indices, overlap.replaced_fields(op), changed)
    return TableState(manifest=replace(head.manifest, fragments=after), indices=indices)


def conflicts_data_replacement(
    op: ops.DataReplacement, theirs: rules.Relevant, context: rules.Context
) -> rules.Verdict:
    """Check a replacement: compatible while the fragment keeps the same rows."""
    mine = overlap.replaced(op)
    match theirs:
        case ops.Delete() | ops.Update():
            return _against_rows(op, theirs)
        case ops.DataReplacement():
            return _against_replacement(op, theirs)
        case ops.CreateIndex():
            shared = overlap.indexed_fields(theirs) & overlap.replaced_fields(op)
            return rules.Retryable("a column to be replaced was indexed") if shared else rules.OK
        case ops.Rewrite():
            gone = overlap.rewritten(theirs)
            return overlap.on_same_fragments(mine, gone, what="rows moved to other files")
        case ops.Merge():
            return rules.Retryable("every fragment was rewritten")
        case ops.Project():
            return _against_schema(op, theirs)
        case ops.Overwrite() | ops.Restore():
            return rules.Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return rules.Incompatible("it may conflict with replaced data")
        case ops.Append() | ops.Clone() | ops.UpdateBases() | ops.UpdateConfig():
            return rules.OK
        case _:
            assert_never(theirs)


def _against_schema(op: ops.DataReplacement, theirs: ops.Project) -> rules.Verdict:
    if overlap.changes_field_rules(theirs):
        return rules.Retryable("the schema changed")
    gone = overlap.replaced_fields(op) - theirs.schema.by_id().keys()
    return rules.Incompatible(f"field {min(gone)} no longer exists") if gone else rules.OK


def _against_rows(op: ops.DataReplacement, theirs: ops.Delete | ops.Update) -> rules.Verdict:
    mine, others = overlap.replaced(op), overlap.touched(theirs)
    if gone := mine & others.removed:
        return rules.Incompatible(f"fragment {min(gone)} no longer exists")
    if isinstance(theirs, ops.Delete):
        return rules.OK
    return overlap.on_same_fragments(mine, others.updated, what="rows changed")


def _against_replacement(op: ops.DataReplacement, theirs: ops.DataReplacement) -> rules.Verdict:
    mine = {(r.fragment_id, f) for r in op.replacements for f in r.new_file.fields}
    other = {(r.fragment_id, f) for r in theirs.replacements for f in r.new_file.fields}
    shared = mine & other
    return rules.Retryable(f"both replace field {min(shared)[1]}") if shared else rules.OK


def _ensure_one_file_each(op: ops.DataReplacement) -> None:
    if len(overlap.replaced(op)) < len(op.replacements):
        raise InvalidRequestError("a data replacement lists a fragment twice")
    if len({r.new_file.fields for r in op.replacements}) > 1:
        raise InvalidRequestError("all files of a data replacement must have the same fields")


def _replaced(fragment: Fragment, replacement: Replacement) -> Fragment:
    new = replacement.new_file
    if any(_same_shape(f, new) for f in fragment.files):
        files = tuple(new if _same_shape(f, new) else f for f in fragment.files)
        return replace(fragment, files=files)
    files = (*(_without_columns(f, new) for f in fragment.files), new)
    return fragments.without_dead_files(replace(fragment, files=files))


def _same_shape(old: DataFile, new: DataFile) -> bool:
    return old.fields == new.fields and old.version is new.version


def _without_columns(old: DataFile, new: DataFile) -> DataFile:
    taken = frozenset(new.fields)
    if taken.isdisjoint(old.fields):
        return old
    fields = tuple(TOMBSTONE if f in taken else f for f in old.fields)
    return replace(old, fields=fields)


DATA_REPLACEMENT: rules.Rules[ops.DataReplacement] = rules.Rules(
    apply=apply_data_replacement, conflicts=conflicts_data_replacement
)


def apply_rewrite(op: ops.Rewrite, head: TableState, target: rules.VersionTarget) -> TableState:
    """Replace the old fragments by the new ones, and update index coverage."""
    before = head.manifest
    groups = _numbered(op.groups, fragments.next_id(before))
    after = _exchanged(head.fragments, groups)
    indices = overlap.after_rewrite(
        head.indices,
        groups,
        op.rewritten_indices,
        stable_row_ids=before.has_stable_row_ids,
        records_moves=target.options.choices.fragment_reuse is not None,
    )
    indices = overlap.with_fragment_reuse(indices, target.options.choices.fragment_reuse)
    return TableState(manifest=replace(before, fragments=after), indices=indices)


def conflicts_rewrite(
    op: ops.Rewrite, theirs: rules.Relevant, context: rules.Context
) -> rules.Verdict:
    """Check a rewrite: compatible while no other commit changes its fragments."""
    mine = overlap.rewritten(op)
    match theirs:
        case ops.Delete() | ops.Update():
            shared = overlap.touched(theirs).all
            return overlap.on_same_fragments(mine, shared, what="rows changed")
        case ops.DataReplacement():
            shared = overlap.replaced(theirs)
            return overlap.on_same_fragments(mine, shared, what="a column was replaced")
        case ops.Rewrite():
            return _against_rewrite(op, theirs, context)
        case ops.CreateIndex():
            return _against_index(op, theirs, context)
        case ops.Merge():
            return rules.Retryable("every fragment was rewritten")
        case ops.Overwrite() | ops.Restore():
            return rules.Incompatible("the table was replaced")
        case (
            ops.Append()
            | ops.Clone()
            | ops.Project()
            | ops.UpdateBases()
            | ops.UpdateConfig()
            | ops.UpdateMemWalState()
        ):
            return rules.OK
        case _:
            assert_never(theirs)


def _against_rewrite(op: ops.Rewrite, theirs: ops.Rewrite, context: rules.Context) -> rules.Verdict:
    base, after = context.base, context.theirs_after
    reuse_changed = base.index_named(FRAGMENT_REUSE) != after.index_named(FRAGMENT_REUSE)
    if context.fragment_reuse is not None and reuse_changed:
        return rules.Retryable("both record where rows moved to")
    mine, other = overlap.rewritten(op), overlap.rewritten(theirs)
    return overlap.on_same_fragments(mine, other, what="rows moved to other files")


def _against_index(
    op: ops.Rewrite, theirs: ops.CreateIndex, context: rules.Context
) -> rules.Verdict:
    if context.fragment_reuse is not None:
        entries = (*theirs.new_indices, *theirs.removed_indices)
        if any(i.name == FRAGMENT_REUSE for i in entries):
            return rules.Retryable("the record of where rows moved to was changed")
        return _keeps_together(op, theirs.new_indices)
    return overlap.covers_rewritten(theirs.new_indices, overlap.rewritten(op))


def _keeps_together(op: ops.Rewrite, indices: tuple[IndexMetadata, ...]) -> rules.Verdict:
    """Raise unless an index covers all or none of the fragments that are merged into one."""
    for index in indices:
        covered = frozenset(index.fragments() or ())
        for group in op.groups:
            old = {fragment.id for fragment in group.old_fragments}
            if not index.is_system and covered & old and old - covered:
                return rules.Retryable(
                    f"index {index.name!r} covers only some fragments that are rewritten together"
                )
    return rules.OK


def _numbered(groups: tuple[RewriteGroup, ...], first: int) -> tuple[RewriteGroup, ...]:
    numbered: list[RewriteGroup] = []
    for group in groups:
        new = fragments.numbered(group.new_fragments, first)
        first += sum(1 for f in group.new_fragments if f.id == 0)
        numbered.append(replace(group, new_fragments=new))
    return tuple(numbered)


def _exchanged(before: FragmentList, groups: tuple[RewriteGroup, ...]) -> FragmentList:
    ids = frozenset(before.ids)
    gone: set[FragmentId] = set()
    for group in groups:
        for old in group.old_fragments:
            if old.id not in ids or old.id in gone:
                msg = f"a rewrite replaces fragment {old.id}, which the table does not have"
                raise InvalidRequestError(msg, fragment=old.id)
            gone.add(old.id)
    new = (f for group in groups for f in group.new_fragments)
    return before.exchanged((), removed=gone).appended(new)


REWRITE: rules.Rules[ops.Rewrite] = rules.Rules(apply=apply_rewrite, conflicts=conflicts_rewrite)


def apply_create_index(
    op: ops.CreateIndex, head: TableState, target: rules.VersionTarget
) -> TableState:
    """Remove the old entries and add the new ones."""
    gone = {i.uuid for i in (*op.removed_indices, *op.new_indices)}
    remaining = (i for i in head.indices if i.uuid not in gone)
    after = replace(head, indices=(*remaining, *op.new_indices))
    return merged_generations.with_catchup(after, (*op.removed_indices, *op.new_indices), target)


def conflicts_create_index(
    op: ops.CreateIndex, theirs: rules.Relevant, context: rules.Context
) -> rules.Verdict:
    """Check an index: compatible while its columns stay in the files that were read."""
    match theirs:
        case ops.CreateIndex():
            return _same_names(op, theirs)
        case ops.Rewrite():
            return overlap.covers_rewritten(op.new_indices, overlap.rewritten(theirs))
        case ops.DataReplacement():
            shared = overlap.indexed_fields(op) & overlap.replaced_fields(theirs)
            return rules.Retryable("an indexed column was replaced") if shared else rules.OK
        case ops.UpdateMemWalState():
            writes_mem_wal = any(i.name == MEM_WAL for i in op.new_indices)
            return (
                rules.REBASE
                if writes_mem_wal
                else rules.Incompatible("the state of the MemWAL changed")
            )
        case ops.Merge() | ops.Project() | ops.Update():
            return _on_current_columns(op, context)
        case ops.Overwrite() | ops.Restore():
            return rules.Incompatible("the table was replaced")
        case ops.Append() | ops.Clone() | ops.Delete() | ops.UpdateBases() | ops.UpdateConfig():
            return rules.OK
        case _:
            assert_never(theirs)


def rebase_create_index(
    op: ops.CreateIndex, rebasing: rules.Rebasing
) -> ops.CreateIndex | rules.Retryable:
    """Remove rewritten columns from the coverage of new entries, and keep MemWAL progress."""
    pruned = overlap.without_changed_columns(
        op.new_indices,
        rebasing.head.manifest.schema,
        before=rebasing.base.fragments_by_id(),
        after=rebasing.head.fragments_by_id(),
    )
    entries = (_with_progress(i, rebasing.head) for i in pruned)
    return replace(op, new_indices=tuple(entries))


def _same_names(op: ops.CreateIndex, theirs: ops.CreateIndex) -> rules.Verdict:
    new, removed = _names(theirs.new_indices), _names(theirs.removed_indices)
    shared = _names(op.new_indices) & (new | removed) | _names(op.removed_indices) & new
    return rules.Retryable(f"index {', '.join(sorted(shared))} was changed") if shared else rules.OK


def _names(indices: tuple[IndexMetadata, ...]) -> set[str]:
    return {i.name for i in indices}


def _on_current_columns(op: ops.CreateIndex, context: rules.Context) -> rules.Verdict:
    fields = context.theirs_after.manifest.schema.by_id()
    for index in op.new_indices:
        if not all(f in fields for f in index.fields):
            return rules.Retryable(f"a column of index {index.name!r} no longer exists")
    pruned = overlap.without_changed_columns(
        op.new_indices,
        context.theirs_after.manifest.schema,
        before=context.base.fragments_by_id(),
        after=context.theirs_after.fragments_by_id(),
    )
    return rules.OK if pruned == op.new_indices else rules.REBASE


def _with_progress(index: IndexMetadata, head: TableState) -> IndexMetadata:
    current = head.index_named(MEM_WAL)
    if index.name != MEM_WAL or current is None:
        return index
    reached = merged_generations.progress_of(current).items()
    marks = (MergedGeneration(region_id=r, generation=g) for r, g in reached)
    return merged_generations.with_progress(index, marks)


CREATE_INDEX: rules.Rules[ops.CreateIndex] = rules.Rules(
    apply=apply_create_index, conflicts=conflicts_create_index, rebase=rebase_create_index
)
