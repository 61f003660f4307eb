"""Segments with fewer entries than rows are recognized, and built again by a refresh."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.index.scalar.btree.kind import BTREE, BTreeSegment
from lancelake.index.stored_segment import StoredIndices
from lancelake.scan.index_search.sources import lacks_rows
from lancelake.storage.location import Location
from lancelake.table.index import refresh
from tests.support.index_tables import add_index


class _Entries(BTreeSegment):
    """A segment with some entries."""

    def __init__(self, count: int) -> None:
        self._count = count

    def num_entries(self) -> int:
        return self._count


def _table(root: Path, *, stable: bool) -> lance.LanceDataset:
    made = lance.write_dataset(
        pa.table({"a": range(10)}), root, max_rows_per_file=5, enable_stable_row_ids=stable
    )
    made.create_scalar_index("a", "BTREE")
    made.delete("a = 1")
    return made


@pytest.mark.parametrize(("entries", "lacks"), [(8, True), (9, False), (10, False)])
def test_deleted_rows_need_no_entries(tmp_path: Path, entries: int, lacks: bool) -> None:
    made = lance.write_dataset(
        pa.table({"a": range(10)}), tmp_path, max_rows_per_file=5, enable_stable_row_ids=True
    )
    name = add_index(str(tmp_path), BTREE, "a")
    made.delete("a = 1")
    base = open_snapshot(Location.parse(tmp_path), Latest())
    (segment,) = StoredIndices(base).segments(name)
    stored = _Entries(entries)
    assert lacks_rows(base, stored, segment.coverage) is lacks


def test_entries_by_address_are_not_counted(tmp_path: Path) -> None:
    _table(tmp_path, stable=False)
    base = open_snapshot(Location.parse(tmp_path), Latest())
    (segment,) = StoredIndices(base).segments("a_idx")
    assert not lacks_rows(base, _Entries(0), segment.coverage)


def test_refresh_builds_such_a_segment_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _table(tmp_path, stable=True)
    (before,) = made.describe_indices()
    made.optimize.optimize_indices()
    assert made.describe_indices()[0].segments[0].uuid == before.segments[0].uuid
    monkeypatch.setattr(refresh, "lacks_rows", lambda *_: True)
    made.optimize.optimize_indices()
    (after,) = made.describe_indices()
    assert after.segments[0].uuid != before.segments[0].uuid
    assert made.to_table(filter="a > 7")["a"].to_pylist() == [8, 9]
