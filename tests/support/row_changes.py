"""Delete and update rows with our own parts: a scan, deletion files, a commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.commit_ports import write_deletions
from lancelake.data.fragment_reader import load_deletions
from lancelake.errors import RetryableConflictError
from lancelake.format.deletion import choose_encoding
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.operations import Delete, Update
from lancelake.pylance import LanceDataset, dataset
from lancelake.pylance._dataset.write import write_fragments
from lancelake.pylance._values.fragment_metadata import to_fragment
from lancelake.table.publish import CommitChoices, new_transaction, publish

Rows = dict[FragmentId, BitMap]


def delete_rows(uri: str, where: str, *, retries: int = 50, **options: Any) -> LanceDataset:
    """Delete the rows that match, done again as often as another writer comes between."""
    return _again(lambda: delete_once(dataset(uri, **options), where), retries)


def update_rows(
    uri: str, where: str, column: str, value: Any, *, retries: int = 50, **options: Any
) -> LanceDataset:
    """Set a column of the rows that match, done again as often as another writer comes between."""
    return _again(lambda: update_once(dataset(uri, **options), where, column, value), retries)


def delete_once(ds: LanceDataset, where: str) -> LanceDataset:
    """Delete the rows that match from the version at hand."""
    base = ds._snapshot
    rows = _matching(ds, where)
    updated, removed = _without(base, rows)
    operation = Delete(updated_fragments=updated, deleted_fragment_ids=removed, predicate=where)
    return _published(base, operation, rows)


def update_once(ds: LanceDataset, where: str, column: str, value: Any) -> LanceDataset:
    """Move the rows that match to new fragments with another value."""
    base = ds._snapshot
    rows = _matching(ds, where)
    found = ds.to_table(filter=where)
    place = found.schema.get_field_index(column)
    field = found.schema.field(place)
    changed = found.set_column(place, field, pa.array([value] * found.num_rows, field.type))
    written: Any = write_fragments(changed, ds)
    updated, removed = _without(base, rows)
    operation = Update(
        updated_fragments=updated,
        removed_fragment_ids=removed,
        new_fragments=tuple(to_fragment(f) for f in written),
        fields_for_preserving_frag_bitmap=(FieldId(place),),
    )
    return _published(base, operation, rows)


def _again(act: Any, retries: int) -> LanceDataset:
    for _ in range(retries):
        try:
            return act()
        except RetryableConflictError:
            continue
    return act()


def _matching(ds: LanceDataset, where: str) -> Rows:
    found = ds.to_table(columns=[], filter=where, with_row_address=True)
    rows: Rows = {}
    for address in found["_rowaddr"].to_pylist():
        rows.setdefault(FragmentId(address >> 32), BitMap()).add(address & 0xFFFFFFFF)
    return rows


def _without(base: Snapshot, rows: Rows) -> tuple[tuple[Fragment, ...], tuple[FragmentId, ...]]:
    updated: list[Fragment] = []
    removed: list[FragmentId] = []
    for fragment in base.manifest.fragments:
        if fragment.id not in rows:
            continue
        gone = load_deletions(base.files, fragment) | rows[fragment.id]
        if len(gone) == fragment.physical_rows:
            removed.append(fragment.id)
            continue
        before = fragment.deletion_file
        encoding = choose_encoding(len(gone), before.file_type if before else None)
        file = write_deletions(base.location, fragment.id, gone, base.version, encoding)
        updated.append(replace(fragment, deletion_file=file))
    return tuple(updated), tuple(removed)


def _published(base: Snapshot, operation: Delete | Update, rows: Rows) -> LanceDataset:
    affected = FrozenMap({i: bytes(found.serialize()) for i, found in rows.items()})
    choices = CommitChoices(affected_rows=affected)
    transaction = new_transaction(operation, base.version, choices)
    return LanceDataset._of(publish(base, transaction, choices), None)
