"""Row addresses put together and taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.format import ids, row_address
from lancelake.format.ids import FragmentId

FRAGMENTS = st.integers(0, ids.MAX_FRAGMENT_ID)
OFFSETS = st.integers(0, ids.MAX_ROWS - 1)
ADDRESSES = st.lists(
    st.builds(lambda fragment, offset: (fragment << 32) + offset, st.integers(0, 3), OFFSETS)
)


@given(FRAGMENTS, OFFSETS)
def test_an_address_holds_its_fragment_and_its_offset(fragment: int, offset: int) -> None:
    addresses = row_address.row_addresses(fragment, np.array([offset], dtype=np.uint32))
    assert addresses.dtype == np.uint64
    assert row_address.fragment_of(addresses).tolist() == [fragment]
    assert row_address.offset_of(addresses).tolist() == [offset]
    assert row_address.split(int(addresses[0])) == (fragment, offset)


@given(ADDRESSES)
def test_addresses_by_fragment_are_the_same_addresses(numbers: list[int]) -> None:
    found = row_address.by_fragment(np.array(numbers, dtype=np.uint64))
    assert all(found.values())
    assert row_address.ascending(found).tolist() == sorted(set(numbers))


def test_repeated_addresses_of_several_fragments_are_sorted_into_them() -> None:
    addresses = np.array([7 << 32 | 2, 1, 7 << 32, 1], dtype=np.uint64)
    assert row_address.by_fragment(addresses) == {
        FragmentId(0): BitMap([1]),
        FragmentId(7): BitMap([0, 2]),
    }


def test_no_offsets_have_no_addresses() -> None:
    assert row_address.ascending({}).dtype == np.uint64
    assert row_address.by_fragment(np.array([], dtype=np.uint64)) == {}


def test_many_addresses_are_marked_as_they_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(3).integers(0, 900, 2000).astype(np.uint64)
    addresses = (numbers % np.uint64(3) * np.uint64(2) << np.uint64(32)) | numbers
    expected = row_address.by_fragment(addresses)
    monkeypatch.setattr(row_address, "_MANY", 10)
    assert row_address.by_fragment(addresses) == expected
    assert expected.keys() == {0, 2, 4}


@pytest.mark.parametrize("shift", [0, 1 << 16], ids=["short ids", "long ids"])
def test_addresses_sorted_by_fragment_first_are_the_same(shift: int) -> None:
    chance = np.random.default_rng(4)
    fragments = chance.choice([0, 3, 65_535], 20_000) + shift
    offsets = chance.integers(0, ids.MAX_ROWS, 20_000).astype(np.uint64)
    addresses = (fragments.astype(np.uint64) << np.uint64(32)) | offsets
    found = row_address.by_fragment(addresses)
    assert row_address.ascending(found).tolist() == sorted(set(addresses.tolist()))
