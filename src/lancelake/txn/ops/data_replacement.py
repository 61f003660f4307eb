"""DataReplacement: one column file replaced per fragment."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.format.operations.data_replacement import Replacement
from lancelake.txn import fragments, index_coverage, overlap, row_id_assignment
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    Context,
    Incompatible,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
    unchanged,
)


def apply(op: ops.DataReplacement, head: TableState, target: VersionTarget) -> TableState:
    """Replace the files; indices on their columns lose the fragments."""
    _ensure_one_file_each(op)
    current = head.fragments_by_id()
    fragments.ensure_known(overlap.replaced(op), current, what="the replacement of data")
    swapped = (_replaced(current[r.fragment_id], r) for r in op.replacements)
    updated = [row_id_assignment.touched_in(f, target.version) for f in swapped]
    after = head.fragments.exchanged(updated)
    changed = [f.id for f in updated]
    indices = index_coverage.without_fragments(head.indices, overlap.replaced_fields(op), changed)
    return TableState(manifest=replace(head.manifest, fragments=after), indices=indices)


def conflicts(op: ops.DataReplacement, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a replacement: compatible while the fragment keeps the same rows."""
    mine = overlap.replaced(op)
    match theirs:
        case ops.Delete() | ops.Update():
            return _against_rows(op, theirs)
        case ops.DataReplacement():
            return _against_replacement(op, theirs)
        case ops.CreateIndex():
            shared = overlap.indexed_fields(theirs) & overlap.replaced_fields(op)
            return Retryable("a column to be replaced was indexed") if shared else OK
        case ops.Rewrite():
            gone = overlap.rewritten(theirs)
            return overlap.on_same_fragments(mine, gone, what="rows moved to other files")
        case ops.Merge():
            return Retryable("every fragment was rewritten")
        case ops.Project():
            return _against_schema(op, theirs)
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UnknownOperation() | ops.UpdateMemWalState():
            return Incompatible("it may conflict with replaced data")
        case (
            ops.Append()
            | ops.Clone()
            | ops.ReserveFragments()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def _against_schema(op: ops.DataReplacement, theirs: ops.Project) -> Verdict:
    if overlap.changes_field_rules(theirs):
        return Retryable("the schema changed")
    gone = overlap.replaced_fields(op) - theirs.schema.by_id().keys()
    return Incompatible(f"field {min(gone)} no longer exists") if gone else OK


def _against_rows(op: ops.DataReplacement, theirs: ops.Delete | ops.Update) -> Verdict:
    mine, others = overlap.replaced(op), overlap.touched(theirs)
    if gone := mine & others.removed:
        return Incompatible(f"fragment {min(gone)} no longer exists")
    if isinstance(theirs, ops.Delete):
        return OK
    return overlap.on_same_fragments(mine, others.updated, what="rows changed")


def _against_replacement(op: ops.DataReplacement, theirs: ops.DataReplacement) -> Verdict:
    mine = {(r.fragment_id, f) for r in op.replacements for f in r.new_file.fields}
    other = {(r.fragment_id, f) for r in theirs.replacements for f in r.new_file.fields}
    shared = mine & other
    return Retryable(f"both replace field {min(shared)[1]}") if shared else OK


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


RULES: Rules[ops.DataReplacement] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
