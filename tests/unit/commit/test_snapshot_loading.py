from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lancelake.commit.snapshot import Snapshot, open_line
from lancelake.errors import CorruptTableError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.manifest import encode_manifest
from lancelake.storage.location import Location
from tests.model.operations import MEM_WAL_ENTRY
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import line_on, seed


def test_a_state_holds_the_manifest_and_its_indices(tmp_path: Path) -> None:
    location = Location.parse(tmp_path / "t.lance")
    seeded = seed(open_line(location).store, indices=(MEM_WAL_ENTRY,))
    found = Snapshot.load(location, seeded.name)
    assert found.state.indices == (MEM_WAL_ENTRY,)
    assert found.state.manifest is found.manifest


def test_a_manifest_that_is_gone_is_a_missing_version() -> None:
    store = DictStore()
    seeded = seed(store)
    store.objects.clear()
    with pytest.raises(VersionNotFoundError):
        line_on(store).load(seeded.name)


def test_the_error_of_a_broken_manifest_names_table_and_version() -> None:
    store = DictStore()
    seeded = seed(store)
    store.put(layout.manifest(seeded.name.name), b"broken")
    with pytest.raises(CorruptTableError) as caught:
        line_on(store).load(seeded.name)
    assert (caught.value.table, caught.value.version) == ("memory://scheduled", 1)


def test_the_transaction_is_read_from_its_file_when_it_is_not_inline() -> None:
    store = DictStore()
    seeded = seed(store)
    expected = seeded.transaction_in(line_on(store).store)
    path = layout.manifest(seeded.name.name)
    store.put(path, encode_manifest(seeded.file.manifest))
    loaded = line_on(store).load(seeded.name)
    assert loaded.file.inline_transaction is None
    assert loaded.transaction_in(line_on(store).store) == expected


def test_a_transaction_that_is_nowhere_is_none() -> None:
    store = DictStore()
    seeded = seed(store)
    store.put(layout.manifest(seeded.name.name), encode_manifest(seeded.file.manifest))
    store.delete(layout.transaction(seeded.state.manifest.transaction_file))
    line = line_on(store)
    assert line.load(seeded.name).transaction_in(store) is None


def test_a_transaction_file_outside_the_table_is_refused() -> None:
    store = DictStore()
    seeded = seed(store)
    escaped = replace(seeded.file.manifest, transaction_file="../../x.txn")
    store.put(layout.manifest(seeded.name.name), encode_manifest(escaped))
    line = line_on(store)
    with pytest.raises(CorruptTableError, match="leaves the table"):
        line.load(seeded.name).transaction_in(store)
