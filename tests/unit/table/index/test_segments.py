"""Segments built apart: merged, committed together, replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError, InvalidRequestError
from tests.support.scalar_index_tables import FILTERS, IndexedTable

KINDS = {"BTREE": "i", "BITMAP": "k", "LABEL_LIST": "l"}


def parts(table: lance.LanceDataset, column: str = "i", kind: str = "BTREE") -> list[lance.Index]:
    return [table.create_index_uncommitted(column, kind, fragment_ids=[n]) for n in range(3)]


@pytest.mark.parametrize("kind", KINDS)
def test_merged_segments_answer_as_a_scan_does(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    merged = table.merge_existing_index_segments(parts(table, column, kind))
    table.commit_existing_index_segments(f"{column}_idx", column, [merged])

    found = IndexedTable(table.uri)
    assert [w for text in FILTERS[column] if (w := found.difference(text, column))] == []


def test_segments_are_committed_as_one_index(table: lance.LanceDataset) -> None:
    table.commit_existing_index_segments("x", "i", parts(table))

    (index,) = table.describe_indices()
    assert [segment.fragment_ids for segment in index.segments] == [{0}, {1}, {2}]
    table.validate()


def test_a_segment_that_others_cover_is_replaced(table: lance.LanceDataset) -> None:
    built = parts(table)
    table.commit_existing_index_segments("x", "i", built)
    merged = table.merge_existing_index_segments(built[:2])
    table.commit_existing_index_segments("x", "i", [merged])

    (index,) = table.describe_indices()
    assert sorted(map(sorted, (s.fragment_ids for s in index.segments))) == [[0, 1], [2]]


def test_a_segment_that_others_cover_in_part_is_not_replaced(table: lance.LanceDataset) -> None:
    built = parts(table)
    merged = table.merge_existing_index_segments(built[:2])
    table.commit_existing_index_segments("x", "i", [merged])

    with pytest.raises(InvalidRequestError, match=r"covers fragments \[1\]"):
        table.commit_existing_index_segments("x", "i", [built[0]])


def test_overlapping_segments_are_refused(table: lance.LanceDataset) -> None:
    first, *_ = parts(table)
    again = table.create_index_uncommitted("i", "BTREE", fragment_ids=[0])

    with pytest.raises(InvalidRequestError, match="several segments cover fragment 0"):
        table.commit_existing_index_segments("x", "i", [first, again])


def test_no_segments_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="at least one segment"):
        table.commit_existing_index_segments("x", "i", [])


def test_segments_of_another_column_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="was not built on column 'k'"):
        table.commit_existing_index_segments("x", "k", parts(table))


def test_an_incomplete_segment_is_not_committed(table: lance.LanceDataset) -> None:
    first, *_ = parts(table)
    path = Path(table.uri, "_indices", first.uuid, "page_data.lance")
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(CorruptTableError, match="is not complete"):
        table.commit_existing_index_segments("x", "i", [first])


def test_files_that_an_entry_does_not_list_are_found(table: lance.LanceDataset) -> None:
    bare = [replace(part, files=None) for part in parts(table)]
    table.commit_existing_index_segments("x", "i", bare)

    assert all(entry.files for entry in table._snapshot.indices)


def test_fragments_whose_column_was_written_since_are_not_covered(
    table: lance.LanceDataset,
) -> None:
    built = parts(table)
    table.update({"i": "i + 1"}, "n < 50", write_mode="rewrite_columns")
    table.commit_existing_index_segments("i_idx", "i", built)

    (index,) = table.describe_indices()
    covered = set().union(*(segment.fragment_ids for segment in index.segments))
    assert 0 not in covered
