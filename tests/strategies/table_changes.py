"""Strategies for changes of a small table: operations that fit the current state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyroaring import BitMap

from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId, Version
from lancelake.format.operations import MapUpdate, Operation, Replacement, RewriteGroup
from lancelake.format.rowids import RowIdSequence, VersionSequence
from lancelake.txn import conflict_matrix
from lancelake.txn.fragments import row_id_values
from lancelake.txn.options import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An operation and the rows it takes from their places."""

    operation: Operation
    rows: FrozenMap[FragmentId, tuple[int, ...]] | None = None


class Deletions:
    """Deleted rows by the id of their file; files are numbered as they come."""

    def __init__(self) -> None:
        self._files: dict[int, BitMap] = {}

    def load_deletions(self, fragment: Fragment) -> BitMap:
        """Return the deleted rows of a fragment."""
        file = fragment.deletion_file
        return BitMap() if file is None else self._files[file.id]

    def store_deletions(
        self, fragment_id: FragmentId, rows: BitMap, read_version: Version
    ) -> DeletionFile:
        """Keep deleted rows."""
        number = len(self._files) + 1
        self._files[number] = rows
        return DeletionFile(
            file_type=DeletionFileType.BITMAP,
            read_version=read_version,
            id=number,
            num_deleted_rows=len(rows),
        )


@st.composite
def changes(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    """Draw an operation that makes sense on this version."""
    kinds = [_append, _config, _reserve, _index]
    if head.manifest.fragments:
        kinds += [_delete, _update, _compact, _replace_column]
    return draw(draw(st.sampled_from(kinds))(head, deletions, label))


@st.composite
def _append(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    count = draw(st.integers(1, 2))
    sizes = [draw(st.integers(1, 5)) for _ in range(count)]
    new = (_new(f"{label}-{n}", size) for n, size in enumerate(sizes))
    return Change(operation=ops.Append(fragments=tuple(new)))


@st.composite
def _config(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    update = MapUpdate(entries=FrozenMap({draw(st.sampled_from("ab")): label}))
    return Change(operation=ops.UpdateConfig(config=update))


@st.composite
def _reserve(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    return Change(operation=ops.ReserveFragments(num_fragments=draw(st.integers(1, 3))))


@st.composite
def _index(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    covered = [f.id for f in head.manifest.fragments if draw(st.booleans())]
    entry = conflict_matrix.index(f"{label}-index", conflict_matrix.VALUE, *covered)
    return Change(operation=ops.CreateIndex(new_indices=(entry,)))


@st.composite
def _delete(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    taken = draw(_rows(head, deletions))
    updated, removed = _without(taken, head, deletions)
    op = ops.Delete(updated_fragments=updated, deleted_fragment_ids=removed, predicate=label)
    return Change(operation=op, rows=taken)


@st.composite
def _update(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    taken = draw(_rows(head, deletions))
    inserted = draw(st.integers(0, 2))
    updated, removed = _without(taken, head, deletions)
    current = head.fragments_by_id()
    moved = sum(len(rows) for rows in taken.values())
    new = _new(label, moved + inserted)
    if head.manifest.has_stable_row_ids:
        ids = [row_id_values(current[i])[list(rows)] for i, rows in taken.items()]
        new = replace(new, row_ids=RowIdSequence.of(np.concatenate(ids)).encode())
    op = ops.Update(
        updated_fragments=updated,
        removed_fragment_ids=removed,
        new_fragments=(new,),
        fields_for_preserving_frag_bitmap=(conflict_matrix.TEXT,),
    )
    return Change(operation=op, rows=taken)


@st.composite
def _compact(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    old = draw(st.sampled_from(head.manifest.fragments))
    rows = old.physical_rows or 0
    live = [n for n in range(rows) if n not in deletions.load_deletions(old)]
    # Ids far above the others stand for reserved ones; each label has its own.
    number = 1000 * (1 + sum(label.encode())) + head.manifest.version
    new = replace(_new(f"{label}-compacted", len(live)), id=FragmentId(number))
    if head.manifest.has_stable_row_ids:
        made = VersionSequence.constant(1, rows=len(live)).encode()
        ids = RowIdSequence.of(row_id_values(old)[live]).encode()
        new = replace(new, row_ids=ids, created_at_versions=made, last_updated_at_versions=made)
    group = RewriteGroup(old_fragments=(old,), new_fragments=(new,))
    return Change(operation=ops.Rewrite(groups=(group,)))


@st.composite
def _replace_column(draw: DrawFn, head: TableState, deletions: Deletions, label: str) -> Change:
    chosen = draw(st.sampled_from(head.manifest.fragments))
    file = conflict_matrix.data_file(f"{label}-column.lance", (conflict_matrix.VALUE,))
    replacement = Replacement(fragment_id=chosen.id, new_file=file)
    return Change(operation=ops.DataReplacement(replacements=(replacement,)))


@st.composite
def _rows(
    draw: DrawFn, head: TableState, deletions: Deletions
) -> FrozenMap[FragmentId, tuple[int, ...]]:
    chosen = draw(st.sampled_from(head.manifest.fragments))
    gone = deletions.load_deletions(chosen)
    live = [n for n in range(chosen.physical_rows or 0) if n not in gone]
    rows = draw(st.sets(st.sampled_from(live), min_size=1))
    return FrozenMap({chosen.id: tuple(sorted(rows))})


def _without(
    taken: FrozenMap[FragmentId, tuple[int, ...]], head: TableState, deletions: Deletions
) -> tuple[tuple[Fragment, ...], tuple[FragmentId, ...]]:
    updated: list[Fragment] = []
    removed: list[FragmentId] = []
    current = head.fragments_by_id()
    for fragment_id, rows in taken.items():
        gone = deletions.load_deletions(current[fragment_id]) | BitMap(rows)
        if len(gone) == current[fragment_id].physical_rows:
            removed.append(fragment_id)
            continue
        file = deletions.store_deletions(fragment_id, gone, head.manifest.version)
        updated.append(replace(current[fragment_id], deletion_file=file))
    return tuple(updated), tuple(removed)


def _new(path: str, rows: int) -> Fragment:
    fragment = conflict_matrix.fragment(FragmentId(0), path=f"{path}.lance")
    return replace(fragment, physical_rows=rows)


def live_rows(state: TableState, deletions: Deletions) -> set[tuple[str, int, str]]:
    """Name each live row by the files its key and its value lie in, and its place there."""
    found = set()
    for each in state.manifest.fragments:
        gone = deletions.load_deletions(each)
        key, value = (_file(each, f).path for f in (conflict_matrix.KEY, conflict_matrix.VALUE))
        found |= {(key, n, value) for n in range(each.physical_rows or 0) if n not in gone}
    return found


def _file(fragment: Fragment, field: int) -> DataFile:
    return next(f for f in fragment.files if field in f.fields)
