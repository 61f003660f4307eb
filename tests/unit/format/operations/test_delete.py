"""Codec of Delete: fragments and predicate."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Delete
from tests.unit.format.golden.files import RELEASES, committed


def golden(release: str) -> Delete:
    operation = committed(release, "delete").operation
    assert isinstance(operation, Delete)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_fragments_that_lost_rows_have_a_deletion_file(release):
    found = golden(release).updated_fragments

    assert sorted((f.id, f.num_deleted_rows) for f in found) == [(0, 2), (1, 1)]


@pytest.mark.parametrize("release", RELEASES)
def test_no_fragment_is_gone(release):
    assert golden(release).deleted_fragment_ids == ()


@pytest.mark.parametrize("release", RELEASES)
def test_the_predicate_is_kept(release):
    assert golden(release).predicate == "id in (3, 5, 70)"
