"""Codec of DataReplacement: a replaced file and its fragment."""

from __future__ import annotations

import pytest

from lancelake.format.operations import DataReplacement
from tests.unit.format.golden.files import RELEASES, committed


@pytest.mark.parametrize("release", RELEASES)
def test_the_new_file_takes_over_its_column(release):
    operation = committed(release, "data_replacement").operation
    assert isinstance(operation, DataReplacement)
    (found,) = operation.replacements

    assert (found.fragment_id, found.new_file.path, found.new_file.fields) == (
        0,
        "replacement.lance",
        (9,),
    )
