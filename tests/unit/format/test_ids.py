"""Detached versions are distinguished from main versions."""

from __future__ import annotations

from lancelake.format.layout import DETACHED_BIT, is_detached


def test_a_version_with_the_highest_bit_is_detached():
    assert is_detached(DETACHED_BIT)


def test_a_version_without_the_highest_bit_is_not_detached():
    assert not is_detached(DETACHED_BIT - 1)
