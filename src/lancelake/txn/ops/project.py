"""Project: columns dropped, renamed or reordered; no data is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.txn import fragments, index_coverage
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


def apply(op: ops.Project, head: TableState, target: VersionTarget) -> TableState:
    """Replace the schema, and remove files without any of its columns."""
    before = head.manifest
    # The operation does not include schema metadata.
    schema = replace(op.schema, metadata=before.schema.metadata)
    fields = schema.by_id()
    after = head.fragments.mapped(lambda f: fragments.without_dropped_files(f, fields))
    indices = index_coverage.retained(head.indices, schema, after.ids)
    manifest = replace(before, schema=schema, fragments=after)
    return TableState(manifest=manifest, indices=indices)


def conflicts(op: ops.Project, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a projection: conflicts with schema changes, and with rows it would make invalid."""
    match theirs:
        case ops.Append() | ops.DataReplacement() | ops.Update():
            return OK if op.preserves_nullability else Retryable("values were written")
        case ops.Merge() | ops.Project():
            return Retryable("the schema changed")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Clone()
            | ops.CreateIndex()
            | ops.Delete()
            | ops.ReserveFragments()
            | ops.Rewrite()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


RULES: Rules[ops.Project] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
