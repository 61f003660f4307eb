"""Immutable maps behave like mappings."""

from __future__ import annotations

import pickle

import pytest

from lancelake.format.frozen import FrozenMap


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
