"""Do immutable containers behave as the map and the tuple they stand for?"""

from __future__ import annotations

import pickle

import pytest

from lancelake.format.frozen import FrozenMap, LazyTuple


def test_maps_with_equal_items_are_equal():
    assert FrozenMap({"a": 1, "b": 2}) == FrozenMap({"b": 2, "a": 1})


def test_equal_maps_have_equal_hashes():
    assert hash(FrozenMap({"a": 1, "b": 2})) == hash(FrozenMap({"b": 2, "a": 1}))


def test_a_map_does_not_follow_the_dict_it_was_made_from():
    source = {"a": 1}
    made = FrozenMap(source)
    source["a"] = 2

    assert made["a"] == 1


def test_a_map_cannot_be_assigned_to():
    with pytest.raises(TypeError):
        FrozenMap({"a": 1})["a"] = 2  # type: ignore[index]


def test_a_map_survives_pickling():
    assert pickle.loads(pickle.dumps(FrozenMap({"a": 1}))) == FrozenMap({"a": 1})


def test_a_lazy_tuple_decodes_nothing_before_it_is_asked():
    asked: list[int] = []
    LazyTuple([1, 2, 3], lambda x: asked.append(x) or x)

    assert asked == []


def test_a_lazy_tuple_decodes_an_item_once():
    asked: list[int] = []
    lazy = LazyTuple([1, 2, 3], lambda x: asked.append(x) or x * 10)

    assert (lazy[1], lazy[1], asked) == (20, 20, [2])


def test_a_lazy_tuple_equals_the_tuple_of_its_items():
    assert LazyTuple([1, 2], str) == ("1", "2")


def test_a_tuple_equals_the_lazy_tuple_of_its_items():
    assert LazyTuple([1, 2], str) == ("1", "2")


def test_a_lazy_tuple_has_the_hash_of_the_tuple():
    assert hash(LazyTuple([1, 2], str)) == hash(("1", "2"))


@pytest.mark.parametrize("index", [0, 1, -1, -2, slice(1, None), slice(None, None, -1)])
def test_a_lazy_tuple_is_indexed_as_a_tuple(index):
    assert LazyTuple([1, 2], str)[index] == ("1", "2")[index]


@pytest.mark.parametrize("index", [2, -3])
def test_a_lazy_tuple_ends_where_the_tuple_ends(index):
    with pytest.raises(IndexError):
        LazyTuple([1, 2], str)[index]


def test_a_lazy_tuple_is_iterated_as_a_tuple():
    assert list(LazyTuple([1, 2], str)) == ["1", "2"]


def test_a_lazy_tuple_is_pickled_as_its_items():
    assert pickle.loads(pickle.dumps(LazyTuple([1, 2], str))) == ("1", "2")
