"""Stored row sets are filtered and merged as decoded ones are."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format.deletion import decode_bitmap
from lancelake.index.row_sets import RowIds
from lancelake.index.scalar.keyed_sets import KeyedStoredSet, encode_sets, merge_sets, restrict

DENSE = BitMap(range(0, 200_000, 2))
RUNS = BitMap(range(70_000))
RUNS.run_optimize()
SETS = {
    "sparse": RowIds({0: BitMap([1, 5, 99]), 3: BitMap([7])}),
    "dense": RowIds({0: DENSE, 1: BitMap([4])}),
    "runs": RowIds({0: RUNS}),
}


def decoded(sets: list[KeyedStoredSet]) -> dict[object, dict[int, BitMap]]:
    return {
        key: {high: decode_bitmap(data, what="it") for high, data in parts.items()}
        for key, parts in sets
    }


@pytest.mark.parametrize(
    "wanted",
    [
        RowIds({0: BitMap(range(100)), 3: BitMap(range(8))}),
        RowIds({0: BitMap(range(99))}),
        RowIds({0: BitMap(range(200_000)), 1: BitMap(range(5))}),
        RowIds({0: BitMap(range(199_998))}),
        RowIds({0: BitMap([5, 70_000]), 1: BitMap([4])}),
    ],
    ids=["whole", "last row deleted", "whole bitsets", "last of a bitset deleted", "gaps"],
)
def test_only_wanted_rows_are_left(wanted: RowIds) -> None:
    expected = {key: dict((ids & wanted).parts) for key, ids in SETS.items() if ids & wanted}
    assert decoded(list(restrict(encode_sets(SETS.items()), wanted))) == expected


def test_sets_of_a_key_are_joined() -> None:
    one = [(None, RowIds({0: BitMap([1])})), ("b", SETS["sparse"])]
    other = [("a", SETS["dense"]), ("b", SETS["dense"])]
    found = list(merge_sets([encode_sets(one), encode_sets(other)]))
    assert [key for key, _ in found] == [None, "a", "b"]
    assert decoded(found)["b"] == dict((SETS["sparse"] | SETS["dense"]).parts)


def test_damaged_bitmaps_are_refused() -> None:
    wanted = RowIds({0: BitMap(range(10))})
    with pytest.raises(CorruptTableError, match="row ids of an index file"):
        list(restrict([("a", {0: b"no bitmap"})], wanted))
