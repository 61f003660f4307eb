"""One or more changes of each kind that make sense on a table of two fragments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from pyroaring import BitMap

from lancelake.clock import SystemIds
from lancelake.commit.candidate import CommitRequest
from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import BasePath, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId, FragmentId, Version
from lancelake.format.index_meta import (
    MEM_WAL,
    IndexDetails,
    IndexFile,
    IndexMetadata,
    MergedGeneration,
)
from lancelake.format.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateBases,
    UpdateMemWalState,
)
from lancelake.storage.store import ObjectStore
from lancelake.txn.rules import AffectedRows
from tests.support.table_builder import (
    SCHEMA,
    StoredDeletions,
    data_file_bytes,
    fragment,
    request,
    set_config,
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """An operation, and the rows it deletes or moves."""

    operation: Operation
    affected_rows: AffectedRows | None = None

    def request(self, *, unique: int) -> CommitRequest:
        """Ask for the change."""
        asked = request(self.operation, unique=unique)
        return replace(asked, choices=replace(asked.choices, affected_rows=self.affected_rows))


MEM_WAL_ENTRY = IndexMetadata(
    uuid=UUID(int=20),
    name=MEM_WAL,
    fields=(),
    dataset_version=Version(1),
    fragment_bitmap=BitMap().serialize(),
    details=IndexDetails(type_url="/lance.index.pb.MemWalIndexDetails", value=b""),
)


def changes(store: ObjectStore, base: Snapshot) -> dict[str, Change]:
    """Return changes by name; the files they refer to are put into the store."""
    first, second = base.state.manifest.fragments
    for number in range(7, 13):
        store.put(f"data/{fragment(number).files[0].path}", data_file_bytes())
    operations: dict[str, Operation] = {
        "append": Append(fragments=(fragment(7),)),
        "create index": CreateIndex(new_indices=(_index("i", 21),)),
        "create other index": CreateIndex(new_indices=(_index("j", 22),)),
        "delete fragment": _delete(gone=(first.id,)),
        "merge": Merge(fragments=(first, second), schema=SCHEMA),
        "overwrite": Overwrite(fragments=(fragment(8),), schema=SCHEMA),
        "project": Project(schema=replace(SCHEMA, fields=SCHEMA.fields[:1])),
        "replace data": DataReplacement(
            replacements=(Replacement(fragment_id=second.id, new_file=fragment(9).files[0]),)
        ),
        "reserve": ReserveFragments(num_fragments=3),
        "restore": Restore(version=Version(1)),
        "rewrite": Rewrite(
            groups=(RewriteGroup(old_fragments=(first,), new_fragments=(fragment(10),)),)
        ),
        "set a": set_config("a", "1"),
        "set b": set_config("b", "2"),
        "update": Update(removed_fragment_ids=(second.id,), new_fragments=(fragment(11),)),
        "update bases": UpdateBases(new_bases=(_base(),)),
        "update mem wal": UpdateMemWalState(
            merged_generations=(MergedGeneration(region_id=UUID(int=3), generation=1),)
        ),
    }
    found = {name: Change(operation=operation) for name, operation in operations.items()}
    return (
        found
        | {f"delete row {row}": _row_delete(store, first, row) for row in (3, 4)}
        | {"update row 5": _row_update(store, first, 5)}
    )


def _delete(*, updated: tuple[Fragment, ...] = (), gone: tuple[FragmentId, ...] = ()) -> Delete:
    return Delete(updated_fragments=updated, deleted_fragment_ids=gone, predicate="true")


def _without_row(store: ObjectStore, old: Fragment, row: int) -> Fragment:
    deletions = StoredDeletions(store, SystemIds(row))
    entry = deletions.store_deletions(old.id, BitMap([row]), Version(1))
    return replace(old, deletion_file=entry)


def _row_delete(store: ObjectStore, old: Fragment, row: int) -> Change:
    operation = _delete(updated=(_without_row(store, old, row),))
    return Change(operation=operation, affected_rows=FrozenMap({old.id: (row,)}))


def _row_update(store: ObjectStore, old: Fragment, row: int) -> Change:
    updated = (_without_row(store, old, row),)
    operation = Update(updated_fragments=updated, new_fragments=(fragment(12),))
    return Change(operation=operation, affected_rows=FrozenMap({old.id: (row,)}))


def _index(name: str, unique: int) -> IndexMetadata:
    return IndexMetadata(
        uuid=UUID(int=unique),
        name=name,
        fields=(FieldId(0),),
        dataset_version=Version(1),
        fragment_bitmap=BitMap([0, 1]).serialize(),
        details=IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b""),
        files=(IndexFile(path="page_data.lance", size_bytes=1),),
    )


def _base() -> BasePath:
    return BasePath(id=BaseId(0), name="other", is_dataset_root=False, path="memory://other")
