"""Builds, replacements and drops of an index race with any operation and keep coverage right."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from pyroaring import BitMap

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FieldId, Version
from lancelake.format.index_meta import IndexDetails, IndexFile, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.txn.options import TableState
from tests.model.commit_suite import Race, Run, ensure_sound, every_run, two_fragment_table
from tests.model.operations import MEM_WAL_ENTRY, Change, changes
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import line_on, log


def _entry(name: str, unique: int, fragments: tuple[int, ...] = (0, 1)) -> IndexMetadata:
    return IndexMetadata(
        uuid=UUID(int=unique),
        name=name,
        fields=(FieldId(0),),
        dataset_version=Version(1),
        fragment_bitmap=BitMap(fragments).serialize(),
        details=IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b""),
        files=(IndexFile(path="page_data.lance", size_bytes=1),),
    )


OLD = _entry("kept", 31, (0,))
OBJECTS, BASE = two_fragment_table((MEM_WAL_ENTRY, OLD))
STORE = DictStore(OBJECTS)
INDEX_CHANGES = {
    "build": Change(operation=CreateIndex(new_indices=(_entry("new", 32),))),
    "build the same": Change(operation=CreateIndex(new_indices=(_entry("new", 33),))),
    "replace": Change(
        operation=CreateIndex(new_indices=(_entry("kept", 34),), removed_indices=(OLD,))
    ),
    "replace again": Change(
        operation=CreateIndex(new_indices=(_entry("kept", 35),), removed_indices=(OLD,))
    ),
    "add a segment": Change(operation=CreateIndex(new_indices=(_entry("kept", 36, (1,)),))),
    "drop": Change(operation=CreateIndex(new_indices=(), removed_indices=(OLD,))),
}
CHANGES = changes(STORE, BASE) | INDEX_CHANGES
PAIRS = [(mine, theirs) for mine in INDEX_CHANGES for theirs in sorted(CHANGES)]


def _race(*names: str) -> Race:
    requests = {
        f"{number}: {name}": CHANGES[name].request(unique=number)
        for number, name in enumerate(names)
    }
    return Race(objects=STORE.objects, requests=requests, base=BASE)


def _column_files(fragment: Fragment) -> set[str]:
    return {file.path for file in fragment.files if FieldId(0) in file.fields}


def ensure_covered(done: Run) -> None:
    """Fail if a segment covers rows that it was not built of, or two of a name the same."""
    built = {f.id: _column_files(f) for f in BASE.state.manifest.fragments}
    for landed in log(line_on(done.store)):
        state: TableState = landed.snapshot.state
        now = {f.id: _column_files(f) for f in state.manifest.fragments}
        by_name: dict[str, BitMap] = {}
        for entry in (each for each in state.indices if not each.is_system):
            covered = BitMap(i for i in entry.fragments() or () if i in now)
            assert all(built.get(i) == now[i] for i in covered), (entry.name, covered)
            seen = by_name.setdefault(entry.name, BitMap())
            assert not seen & covered, f"segments of {entry.name} overlap"
            seen |= covered


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_every_order_of_an_index_change_and_an_operation_is_sound(mine: str, theirs: str) -> None:
    for done in every_run(_race(mine, theirs)):
        ensure_sound(done)
        ensure_covered(done)


@pytest.mark.parametrize("mine", ["build", "replace", "drop"])
def test_every_order_is_sound_although_a_reply_is_lost(mine: str) -> None:
    for done in every_run(_race(mine, "rewrite"), losses=1):
        ensure_sound(done)
        ensure_covered(done)


def test_coverage_of_rows_that_came_later_is_noticed() -> None:
    late = Change(operation=CreateIndex(new_indices=(_entry("new", 41, (0, 1, 2)),)))
    race = _race("append")
    requests = {**race.requests, "late": late.request(unique=6)}
    with pytest.raises(AssertionError):
        for done in every_run(replace(race, requests=requests)):
            ensure_covered(done)
