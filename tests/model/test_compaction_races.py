"""Compaction with any concurrent operation keeps rows, ids and index coverage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from pyroaring import BitMap

from lancelake.commit.candidate import CommitRequest
from lancelake.commit.snapshot import Snapshot
from lancelake.format import index_meta, layout
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexMetadata
from lancelake.format.manifest import FeatureFlags, encode_manifest
from lancelake.format.operations import CreateIndex, Restore, Rewrite, RewriteGroup, RewrittenIndex
from lancelake.format.rowids import Range, RowIdSequence, VersionSequence
from lancelake.proto import table_pb2
from lancelake.txn import fragments
from lancelake.txn.options import TableState
from tests.model.commit_suite import Race, Run, ensure_sound, every_run
from tests.model.operations import MEM_WAL_ENTRY, Change, changes
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import (
    ROWS,
    StoredDeletions,
    fragment,
    line_on,
    log,
    request,
    seed,
)

Row = tuple[int, int]
"""The file that a row was first in, and its number there."""

COMPACTED = 30
NEW_ID = FragmentId(9)
INDEX = IndexMetadata(
    uuid=UUID(int=40),
    name="known",
    fields=(FieldId(0),),
    dataset_version=Version(1),
    fragment_bitmap=BitMap([0, 1]).serialize(),
    details=IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b""),
)
COMPACTION = "compaction"
REMAPPED = RewrittenIndex(old_id=INDEX.uuid, new_id=UUID(int=42))
KINDS = ("addresses", "addresses, index remapped", "addresses, moves recorded", "stable ids")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of two fragments, the compaction of both into one, and what others may do."""

    store: DictStore
    base: Snapshot
    compaction: CommitRequest
    others: Mapping[str, Change]


def table(kind: str) -> Table:
    store = DictStore()
    seed(store)
    base = _with_index(store, stable=kind == "stable ids")
    old = tuple(base.state.manifest.fragments)
    group = RewriteGroup(old_fragments=old, new_fragments=(_compacted(old),))
    remapped = (REMAPPED,) if kind == "addresses, index remapped" else ()
    asked = request(Rewrite(groups=(group,), rewritten_indices=remapped), unique=99)
    if kind == "addresses, moves recorded":
        asked = replace(asked, choices=replace(asked.choices, fragment_reuse=_moves()))
    others = {name: c for name, c in changes(store, base).items() if name != "rewrite"}
    others["other compaction"] = Change(operation=Rewrite(groups=(group,)))
    built = replace(INDEX, uuid=UUID(int=43))
    others["drop index"] = Change(operation=_index_change(removed=INDEX))
    others["replace index"] = Change(operation=_index_change(built, removed=INDEX))
    return Table(store=store, base=base, compaction=asked, others=others)


def _index_change(*new: IndexMetadata, removed: IndexMetadata) -> CreateIndex:
    return CreateIndex(new_indices=new, removed_indices=(removed,))


def _with_index(store: DictStore, *, stable: bool) -> Snapshot:
    """Write the only version again, with an index, and with ids of rows if asked for."""
    line = line_on(store)
    (name,) = line.handler.every()
    file = line.load(name).file
    manifest = file.manifest
    if stable:
        flag = int(FeatureFlags.STABLE_ROW_IDS)
        manifest = replace(
            manifest,
            fragments=tuple(_with_ids(f) for f in manifest.fragments),
            reader_feature_flags=flag,
            writer_feature_flags=flag,
            next_row_id=len(manifest.fragments) * ROWS,
        )
    section = index_meta.encode_section((INDEX, MEM_WAL_ENTRY))
    inline = file.inline_transaction
    data = encode_manifest(manifest, index_section=section, transaction=inline)
    store.put(layout.manifest(name.name), data)
    return line.load(name)


def _with_ids(fragment: Fragment) -> Fragment:
    first = fragment.id * ROWS
    return _lined(fragment, Range(start=first, end=first + ROWS))


def _lined(fragment: Fragment, ids: Range) -> Fragment:
    versions = VersionSequence(((ids.end - ids.start, 1),)).encode()
    return replace(
        fragment,
        row_ids=RowIdSequence((ids,)).encode(),
        created_at_versions=versions,
        last_updated_at_versions=versions,
    )


def _compacted(old: tuple[Fragment, ...]) -> Fragment:
    new = replace(fragment(COMPACTED, id=NEW_ID), physical_rows=len(old) * ROWS)
    return _lined(new, Range(start=0, end=len(old) * ROWS)) if old[0].row_ids else new


def _moves() -> IndexMetadata:
    digest = table_pb2.FragmentReuseIndexDetails.FragmentDigest
    details = table_pb2.FragmentReuseIndexDetails()
    group = details.inline.versions.add(dataset_version=1).groups.add()
    group.old_fragments.extend(digest(id=n, physical_rows=ROWS) for n in (0, 1))
    group.new_fragments.append(digest(id=NEW_ID, physical_rows=2 * ROWS))
    return IndexMetadata(
        uuid=UUID(int=41),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=Version(1),
        fragment_bitmap=BitMap([NEW_ID]).serialize(),
        details=IndexDetails(
            type_url="/lance.table.FragmentReuseIndexDetails", value=details.SerializeToString()
        ),
    )


def rows_of(done: Run, state: TableState) -> set[Row]:
    """Return the live rows of a version, each once."""
    found: list[Row] = []
    for each in state.manifest.fragments:
        gone = StoredDeletions(done.store).load_deletions(each)
        number = _number(each)
        for row in set(range(each.physical_rows or 0)) - set(gone):
            compacted = number == COMPACTED
            found.append((row // ROWS, row % ROWS) if compacted else (number, row))
    assert len(set(found)) == len(found)
    return set(found)


def _number(each: Fragment) -> int:
    """Return the number that the test gave a fragment's file."""
    name = each.files[0].path
    numbers = [*range(2), *range(7, 13), COMPACTED]
    return next(n for n in numbers if fragment(n).files[0].path == name)


def after(name: str, rows: set[Row]) -> set[Row]:
    """Say which rows there are after an operation, which knows nothing of compactions."""
    file = {"append": 7, "overwrite": 8, "replace data": 9, "update": 11, "update row 5": 12}
    added = {(file[name], row) for row in range(ROWS)} if name in file else set()
    match name:
        case "overwrite":
            return added
        case "delete fragment":
            return {row for row in rows if row[0] != 0}
        case "replace data" | "update":
            return {row for row in rows if row[0] != 1} | added
        case "delete row 3" | "delete row 4" | "update row 5":
            return (rows - {(0, int(name[-1]))}) | added
    return rows | added


def ensure_right(done: Run, names: Mapping[str, str], first: set[Row]) -> None:
    """Fail unless every version has the rows that its log says, known indices and unique ids."""
    expected = first
    for landed in log(line_on(done.store))[1:]:
        assert landed.transaction is not None
        operation, state = landed.transaction.operation, landed.snapshot.state
        name = names[landed.transaction.uuid]
        expected = first if isinstance(operation, Restore) else after(name, expected)
        where = f"{name} at {state.manifest.version}: {[c for c, _ in done.schedule.taken]}"
        assert rows_of(done, state) == expected, where
        _ensure_covered(state, where)
        _ensure_unique_ids(state, where)


def _ensure_covered(state: TableState, where: str) -> None:
    """An index covers fragments of which it knows the rows, at addresses that it can find."""
    built = {0, 1}
    if state.manifest.has_stable_row_ids or state.index_named(FRAGMENT_REUSE):
        built = built | {COMPACTED}
    numbers = {f.id: _number(f) for f in state.manifest.fragments}
    for index in fragments.follow_moves(state.indices):
        if index.name == INDEX.name:
            known = {COMPACTED} if index.uuid == REMAPPED.new_id else built
            covered = [numbers[i] for i in index.fragments() or () if i in numbers]
            assert set(covered) <= known, where


def _ensure_unique_ids(state: TableState, where: str) -> None:
    if not state.manifest.has_stable_row_ids:
        return
    ids: list[int] = []
    for each in state.manifest.fragments:
        assert isinstance(each.row_ids, bytes), where
        found = RowIdSequence.decode(each.row_ids, physical_rows=each.physical_rows or 0)
        ids += found.values().tolist()
    assert len(set(ids)) == len(ids), where


TABLES = {kind: table(kind) for kind in KINDS}
NAMES = sorted(TABLES["addresses"].others)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_order_of_a_compaction_and_another_operation_keeps_rows(name: str, kind: str) -> None:
    made = TABLES[kind]
    other = made.others[name].request(unique=1)
    race = Race(
        objects=made.store.objects,
        requests={COMPACTION: made.compaction, name: other},
        base=made.base,
    )
    names = {made.compaction.transaction.uuid: COMPACTION, other.transaction.uuid: name}
    first = {(number, row) for number in range(2) for row in range(ROWS)}
    for done in every_run(race):
        if kind != "addresses, moves recorded":
            # A record of moves is no part of the log.
            ensure_sound(done)
        ensure_right(done, names, first)
