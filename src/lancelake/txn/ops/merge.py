"""Merge: columns added or rewritten in every fragment, under another schema."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.txn import index_coverage, overlap, row_id_assignment
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


def apply(op: ops.Merge, head: TableState, target: VersionTarget) -> TableState:
    """Replace fragments and schema; no row may be added or removed."""
    _ensure_same_rows(op, head)
    before = head.fragments_by_id()
    after = tuple(
        row_id_assignment.touched_in(f, target.version)
        if f.id in before and before[f.id].files != f.files
        else f
        for f in op.fragments
    )
    schema = replace(op.schema, metadata=op.schema.metadata or head.manifest.schema.metadata)
    indices = index_coverage.retained(head.indices, schema, [f.id for f in after])
    indices = index_coverage.without_changed_columns(
        indices, schema, before=before, after={f.id: f for f in after}
    )
    manifest = replace(head.manifest, fragments=after, schema=schema)
    return TableState(manifest=manifest, indices=indices)


def conflicts(op: ops.Merge, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a merge, which lists all fragments: any change of them or the schema conflicts."""
    match theirs:
        case (
            ops.Append()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Rewrite()
            | ops.Update()
        ):
            return Retryable("fragments changed")
        case ops.UpdateConfig():
            touched = overlap.touches_schema(theirs)
            return Retryable("metadata of the schema changed") if touched else OK
        case ops.Project():
            return Incompatible("the schema changed")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case ops.Clone() | ops.CreateIndex() | ops.ReserveFragments() | ops.UpdateBases():
            return OK
        case _:
            assert_never(theirs)


def _ensure_same_rows(op: ops.Merge, head: TableState) -> None:
    given = {f.id: f for f in op.fragments}
    for fragment in head.manifest.fragments:
        other = given.get(fragment.id)
        if other is None:
            msg = f"a merge must list every fragment, but {fragment.id} is missing"
            raise InvalidRequestError(msg, fragment=fragment.id)
        if fragment.physical_rows is not None and other.physical_rows != fragment.physical_rows:
            msg = (
                f"a merge cannot change the {fragment.physical_rows} rows of fragment "
                f"{fragment.id} to {other.physical_rows}"
            )
            raise InvalidRequestError(
                msg, expected=fragment.physical_rows, found=other.physical_rows
            )


RULES: Rules[ops.Merge] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
