"""Shared rules of deletes and updates: replaced fragments and merged deletions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId, Version
from lancelake.txn import fragments, index_coverage, overlap
from lancelake.txn.rules import Rebasing, Retryable, RowOffsets
from lancelake.txn.state import TableState


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
    rows = rebasing.port.load_deletions(head) | overlap.as_bitmap(_affected(mine.id, rebasing))
    if mine.physical_rows is not None and len(rows) >= mine.physical_rows:
        return None
    read_version = Version(rebasing.head.manifest.version)
    file = rebasing.port.store_deletions(mine.id, rows, read_version)
    return replace(mine, deletion_file=file)


def _takes_a_deleted_row(head: Fragment, rebasing: Rebasing) -> bool:
    mine = overlap.as_bitmap(_affected(head.id, rebasing))
    return bool(rebasing.port.load_deletions(head) & mine)


def _affected(fragment_id: FragmentId, rebasing: Rebasing) -> RowOffsets:
    return () if rebasing.affected_rows is None else rebasing.affected_rows.get(fragment_id, ())


def _same_row(fragment_id: FragmentId) -> Retryable:
    return Retryable(f"both changed the same row of fragment {fragment_id}")
