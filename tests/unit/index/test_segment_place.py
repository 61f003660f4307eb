"""Index files are found in the table itself where an entry names another one by mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.index.cache import segment_place
from lancelake.storage.location import Location


def _branch(root: Path) -> Snapshot:
    made = lance.write_dataset(pa.table({"a": range(20)}), root, max_rows_per_file=10)
    made.create_scalar_index("a", "BTREE")
    side = made.create_branch("side")
    return open_snapshot(Location.parse(side.uri), Latest())


def test_files_of_the_source_are_found_there(tmp_path: Path) -> None:
    side = _branch(tmp_path)
    (entry,) = side.indices
    assert entry.base_id is not None
    assert segment_place(side, entry).root == Location.parse(tmp_path)


def test_a_segment_that_a_compaction_wrote_is_in_the_branch(tmp_path: Path) -> None:
    side = _branch(tmp_path)
    table = lance.dataset(side.location.uri)
    table.delete("a = 3")
    table.optimize.compact_files()
    after = open_snapshot(side.location, Latest())
    (entry,) = after.indices
    assert entry.base_id is None
    assert segment_place(after, entry).root == side.location


def test_a_segment_in_the_branch_is_found_although_the_source_is_named(tmp_path: Path) -> None:
    side = _branch(tmp_path)
    (first,) = side.indices
    table = lance.dataset(side.location.uri)
    table.optimize.compact_files()
    after = open_snapshot(side.location, Latest())
    (entry,) = after.indices
    named = replace(entry, base_id=first.base_id)
    assert segment_place(after, named).root == side.location
