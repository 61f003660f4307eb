"""Sets of fragment ids."""

from __future__ import annotations

import collections.abc
import pickle

import pytest

from lancelake.pylance.bitmap import Bitmap


def test_it_is_a_set_that_equals_other_collections() -> None:
    found = Bitmap([5, 1, 2])
    assert isinstance(found, collections.abc.MutableSet)
    assert found == {1, 2, 5} == found
    assert found == [2, 1, 5]
    assert found != {1}
    assert repr(found) == "Bitmap({1, 2, 5})"


def test_set_algebra_returns_bitmaps() -> None:
    found = Bitmap([1, 2])
    for result in (found | {9}, {9} | found, found.union([9])):
        assert isinstance(result, Bitmap)
        assert result == {1, 2, 9}
    assert found - {1} == found.difference([1]) == {2}
    assert found & {1} == found.intersection([1]) == {1}
    assert found ^ {1} == found.symmetric_difference([1]) == {2}
    assert found.issubset({1, 2, 3})
    assert found.issuperset({1})


def test_changes() -> None:
    found = Bitmap()
    found.add(3)
    found.update([4, 5])
    copy = found.copy()
    found.discard(4)
    found.discard(99)
    assert list(found) == [3, 5]
    assert copy == {3, 4, 5}
    assert 4 not in found
    assert pickle.loads(pickle.dumps(found)) == found


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="unsigned 32-bit integer, got -1"):
        Bitmap([-1])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bitmap())
