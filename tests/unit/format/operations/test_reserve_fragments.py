"""Codec of ReserveFragments: the number of reserved ids."""

from __future__ import annotations

import pytest

from lancelake.format.operations import ReserveFragments
from tests.unit.format.golden.files import RELEASES, committed


@pytest.mark.parametrize("release", RELEASES)
def test_a_compaction_reserves_one_id_per_new_fragment(release):
    assert committed(release, "reserve_fragments").operation == ReserveFragments(num_fragments=1)
