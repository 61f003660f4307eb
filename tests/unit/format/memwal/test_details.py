from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import CorruptTableError
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import MEM_WAL, IndexMetadata
from lancelake.format.memwal import details
from lancelake.format.memwal.details import Bucketed, Unsharded
from lancelake.proto import table_pb2
from lancelake.storage.location import Location
from tests.support.memwal_tables import BUCKET, CAUGHT_UP, COMPOSITE, SIMPLE


def _entry(table: Path) -> IndexMetadata:
    snapshot = open_snapshot(Location.parse(table), Latest())
    return next(i for i in snapshot.indices if i.name == MEM_WAL)


@pytest.mark.parametrize("table", [SIMPLE, COMPOSITE, CAUGHT_UP])
def test_official_details_are_written_back_equal(table: Path) -> None:
    entry = _entry(table)
    assert entry.details is not None
    written = details.encode(details.of_entry(entry))
    before, after = table_pb2.MemWalIndexDetails(), table_pb2.MemWalIndexDetails()
    before.ParseFromString(entry.details.value)
    after.ParseFromString(written.value)
    assert (after, written.type_url) == (before, entry.details.type_url)


def test_official_details_are_read() -> None:
    found = details.of_entry(_entry(SIMPLE))
    assert found.spec() == Bucketed(column=FieldId(0), buckets=2)
    assert (found.progress(), found.maintain_all_indexes) == ({BUCKET: 1}, True)


def test_writer_defaults_are_read() -> None:
    found = details.of_entry(_entry(COMPOSITE))
    assert (found.spec(), found.maintain_all_indexes) == (Unsharded(), False)
    assert found.writer_defaults["max_memtable_rows"] == "50"


def test_an_entry_without_details_is_corrupt() -> None:
    entry = _entry(SIMPLE)
    bare = IndexMetadata(
        uuid=entry.uuid, name=MEM_WAL, fields=(), dataset_version=entry.dataset_version
    )
    with pytest.raises(CorruptTableError, match="no details"):
        details.of_entry(bare)
