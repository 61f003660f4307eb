"""Codec of CreateIndex: the index entry."""

from __future__ import annotations

import pytest

from lancelake.format.operations import CreateIndex
from tests.unit.format.golden.files import RELEASES, committed


@pytest.mark.parametrize("release", RELEASES)
def test_the_entry_is_there(release):
    operation = committed(release, "create_index").operation
    assert isinstance(operation, CreateIndex)

    assert [(i.name, i.fields) for i in operation.new_indices] == [("id_idx", (0,))]


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_removed(release):
    operation = committed(release, "create_index").operation
    assert isinstance(operation, CreateIndex)

    assert operation.removed_indices == ()
