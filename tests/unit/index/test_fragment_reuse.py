"""Addresses follow their rows through every compaction that left the indices alone."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.ids import Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexMetadata
from lancelake.format.row_address import encode_treemap
from lancelake.index.kind import DROPPED
from lancelake.index.moved_rows import NO_MOVES, RowMoves
from lancelake.index.row_sets import RowIds
from lancelake.proto import table_pb2

Details = table_pb2.FragmentReuseIndexDetails
Row = tuple[int, int]


def group(survivors: list[Row], old: list[int], new: list[Row]) -> Details.Group:
    parts: dict[int, BitMap] = {}
    for fragment, row in survivors:
        parts.setdefault(fragment, BitMap()).add(row)
    return Details.Group(
        changed_row_addrs=encode_treemap(parts),
        old_fragments=[Details.FragmentDigest(id=f) for f in old],
        new_fragments=[Details.FragmentDigest(id=f, physical_rows=rows) for f, rows in new],
    )


def recorded(*compactions: list[Details.Group], version: int = 0) -> tuple[IndexMetadata, ...]:
    details = Details()
    for number, groups in enumerate(compactions):
        details.inline.versions.add(dataset_version=number + 1, groups=groups)
    return (
        IndexMetadata(
            uuid=UUID(int=1),
            name=FRAGMENT_REUSE,
            fields=(),
            dataset_version=Version(1),
            index_version=version,
            details=IndexDetails(
                type_url="/lance.table.FragmentReuseIndexDetails",
                value=details.SerializeToString(),
            ),
        ),
    )


def ids(rows: list[Row]) -> np.ndarray:
    return np.array([(f << 32) | r for f, r in rows], dtype=np.uint64)


def places(rows: list[Row], moves: RowMoves) -> list[Row | None]:
    found = moves.row_map(ids(rows)).tolist()
    return [None if i == DROPPED else (i >> 32, i & 0xFFFFFFFF) for i in found]


MOVES = recorded(
    [
        group([(0, 1), (1, 0), (1, 4)], [0, 1], [(5, 2), (6, 1)]),
        group([(2, 0)], [2], [(7, 1)]),
    ],
    [group([(5, 1), (6, 0)], [5, 6], [(8, 2)])],
)


def test_rows_follow_all_compactions() -> None:
    asked = [(1, 4), (0, 1), (1, 0), (0, 0), (2, 0), (3, 9)]
    expected = [(8, 1), None, (8, 0), None, (7, 0), (3, 9)]
    assert places(asked, RowMoves.of(MOVES)) == expected


def test_without_a_record_rows_stay() -> None:
    assert RowMoves.of(()) is NO_MOVES
    assert places([(0, 1)], NO_MOVES) == [(0, 1)]


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 5))))
def test_sets_and_arrays_follow_alike(rows: set[Row]) -> None:
    moves = RowMoves.of(MOVES)
    before = ids(sorted(rows))
    after = moves.row_map(before)
    expected = sorted({i for i in after.tolist() if i != DROPPED})
    assert moves.rows(RowIds.of(before)).to_array().tolist() == expected


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 1"):
        RowMoves.of(recorded([], version=1))


def test_a_record_that_was_not_read_is_refused() -> None:
    (entry,) = recorded([])
    outside = Details()
    outside.external.path = "details.binpb"
    hidden = IndexMetadata(
        uuid=entry.uuid,
        name=entry.name,
        fields=(),
        dataset_version=entry.dataset_version,
        details=IndexDetails(type_url="x", value=outside.SerializeToString()),
    )
    with pytest.raises(UnsupportedError, match="in a file"):
        RowMoves.of((hidden,))


@pytest.mark.parametrize("new", [[], [(5, 1)]])
def test_more_rows_than_places_are_corrupt(new: list[Row]) -> None:
    with pytest.raises(CorruptTableError, match="2 rows of fragments"):
        RowMoves.of(recorded([group([(0, 1), (0, 2)], [0], new)]))
