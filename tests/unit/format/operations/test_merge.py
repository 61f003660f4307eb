"""Codec of Merge: added columns with the whole fragment list."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Merge
from tests.unit.format.golden.files import RELEASES, committed


def golden(release: str) -> Merge:
    operation = committed(release, "merge").operation
    assert isinstance(operation, Merge)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_the_new_column_has_the_next_id(release):
    assert [(f.name, f.id) for f in golden(release).schema.fields][-1] == ("extra", 9)


@pytest.mark.parametrize("release", RELEASES)
def test_every_fragment_has_a_file_for_the_new_column(release):
    assert [f.files[-1].fields for f in golden(release).fragments] == [(9,), (9,), (9,)]


@pytest.mark.parametrize("release", RELEASES)
def test_a_strict_new_column_does_not_preserve_nullability(release):
    assert not golden(release).preserves_nullability
