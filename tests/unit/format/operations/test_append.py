"""Codec of Append: new fragments."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Append
from tests.unit.format.golden.files import RELEASES, committed


@pytest.mark.parametrize("release", RELEASES)
def test_new_fragments_have_no_id_yet(release):
    operation = committed(release, "append").operation
    assert isinstance(operation, Append)

    assert [(f.id, f.physical_rows) for f in operation.fragments] == [(0, 50)]


@pytest.mark.parametrize("release", RELEASES)
def test_new_fragments_carry_no_row_ids(release):
    operation = committed(release, "stable_append").operation
    assert isinstance(operation, Append)

    assert [f.row_ids for f in operation.fragments] == [None]
