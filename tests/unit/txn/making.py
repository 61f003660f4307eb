"""Helpers that run operations on the example table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyroaring import BitMap

from lancelake.format.fragment import DeletionFile, DeletionFileType, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId, Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import FeatureFlags, WriterVersion
from lancelake.format.operations import Operation, Transaction
from lancelake.format.rowids import RowIdSequence, VersionSequence
from lancelake.txn import build, conflict_matrix
from lancelake.txn.fragments import row_id_values
from lancelake.txn.options import BuildOptions, TableState
from lancelake.txn.rules import AffectedRows, Context, Retryable, Verdict

WRITER = WriterVersion(library="lancelake", version="1.2.3")
OPTIONS = BuildOptions(timestamp_ns=5_000_000_000, writer=WRITER)
STABLE = int(FeatureFlags.STABLE_ROW_IDS)


def transaction(operation: Operation, *, read_version: int = 1) -> Transaction:
    return Transaction(
        read_version=Version(read_version),
        uuid="2f6b3f0e-6d52-4f0c-9b0a-000000000000",
        operation=operation,
    )


def table(*, stable: bool = False, indices: tuple[IndexMetadata, ...] = ()) -> TableState:
    state = replace(conflict_matrix.table(), indices=indices)
    if not stable:
        return state
    made = VersionSequence.constant(1, rows=conflict_matrix.ROWS).encode()
    fragments = tuple(
        replace(
            f,
            row_ids=ids(range(n * conflict_matrix.ROWS, (n + 1) * conflict_matrix.ROWS)),
            created_at_versions=made,
            last_updated_at_versions=made,
        )
        for n, f in enumerate(state.manifest.fragments)
    )
    manifest = replace(
        state.manifest,
        fragments=fragments,
        next_row_id=2 * conflict_matrix.ROWS,
        reader_feature_flags=STABLE,
        writer_feature_flags=STABLE,
    )
    return replace(state, manifest=manifest)


def after(
    operation: Operation,
    head: TableState | None = None,
    options: BuildOptions = OPTIONS,
    restored: TableState | None = None,
) -> TableState:
    return build.next_state(transaction(operation), head or table(), options, restored=restored)


def verdict(
    mine: Operation,
    theirs: Operation,
    *,
    base: TableState | None = None,
    rows: dict[FragmentId, tuple[int, ...]] | None = None,
) -> Verdict:
    before = base or table()
    return build.conflicts(
        mine,
        theirs,
        Context(
            base=before,
            theirs_after=after(theirs, before, restored=before),
            affected_rows=None if rows is None else AffectedRows(rows),
        ),
    )


def unseen(mine: Operation, *theirs: Operation) -> Verdict:
    """Return the verdict after commits of which only the resulting version is known."""
    head = table()
    for operation in theirs:
        head = after(operation, head, restored=head)
    return build.unseen(mine, Context(base=table(), theirs_after=head))


def ids(values: range | list[int]) -> bytes:
    return RowIdSequence.of(np.array(list(values), dtype=np.uint64)).encode()


def fragment_ids(state: TableState) -> list[int]:
    return [f.id for f in state.manifest.fragments]


def row_id_list(fragment: Fragment) -> list[int]:
    return [int(i) for i in row_id_values(fragment)]


def versions(encoded: object, rows: int) -> list[int]:
    assert isinstance(encoded, bytes)
    return [int(v) for v in VersionSequence.decode(encoded, physical_rows=rows).values()]


def covered(index: IndexMetadata) -> set[int]:
    found = index.fragments()
    assert found is not None
    return set(found)


class Deletions:
    """Deletion files that are kept in memory, by their id."""

    def __init__(self) -> None:
        self.stored: dict[int, BitMap] = {}

    def load_deletions(self, fragment: Fragment) -> BitMap:
        file = fragment.deletion_file
        if file is None:
            return BitMap()
        if file.id in self.stored:
            return self.stored[file.id]
        # `examples.without_rows` puts the rows into the id.
        return BitMap(n for n in range(conflict_matrix.ROWS) if file.id >> n & 1)

    def store_deletions(
        self, fragment_id: FragmentId, rows: BitMap, read_version: Version
    ) -> DeletionFile:
        number = 1_000_000 + len(self.stored)
        self.stored[number] = rows
        return DeletionFile(
            file_type=DeletionFileType.BITMAP,
            read_version=read_version,
            id=number,
            num_deleted_rows=len(rows),
        )


def rebased(
    mine: Operation, head: TableState, rows: dict[FragmentId, tuple[int, ...]] | None = None
) -> tuple[Transaction | Retryable, Deletions]:
    port = Deletions()
    outcome = build.rebase(
        transaction(mine),
        head,
        base=table(),
        affected_rows=None if rows is None else FrozenMap(rows),
        port=port,
    )
    return outcome, port
