"""Numbers about an index."""

from __future__ import annotations

import lancelake.pylance as lance
from lancelake.table.index.build import coverage_named, coverage_of, segment_statistics
from tests.support.scalar_index_tables import rows


def test_rows_that_were_appended_are_not_indexed(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    indexed = table.count_rows()
    table.insert(rows(50))

    found = coverage_named(table._snapshot, "i_idx")
    assert (found.rows, found.unindexed_rows, found.unindexed_fragments) == (indexed, 50, 1)
    assert found.share == indexed / (indexed + 50)


def test_an_index_of_no_rows_covers_all_of_them(tmp_table: str) -> None:
    table = lance.write_dataset(rows(0), tmp_table)
    table.create_scalar_index("i", "BTREE")

    (found,) = coverage_of(table._snapshot)
    assert found.share == 1.0


def test_segments_are_counted_apart(table: lance.LanceDataset) -> None:
    built = [table.create_index_uncommitted("i", "BTREE", fragment_ids=[n]) for n in (0, 1)]
    table.commit_existing_index_segments("x", "i", built)

    found = coverage_named(table._snapshot, "x")
    assert len(found.rows_per_segment) == found.segments == 2
    assert len(segment_statistics(table._snapshot, "x") or ()) == 2
