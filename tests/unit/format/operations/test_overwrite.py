"""Codec of Overwrite: a new table with its schema."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Overwrite
from tests.unit.format.golden.files import RELEASES, committed


def golden(release: str) -> Overwrite:
    operation = committed(release, "create").operation
    assert isinstance(operation, Overwrite)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_all_columns_are_there(release):
    assert golden(release).schema.names == ("id", "name", "point", "tags", "unit", "uuid")


@pytest.mark.parametrize("release", RELEASES)
def test_official_releases_leave_the_schema_metadata_out(release):
    assert dict(golden(release).schema.metadata) == {}


@pytest.mark.parametrize("release", RELEASES)
def test_fragments_have_no_id_yet(release):
    assert [(f.id, f.physical_rows) for f in golden(release).fragments] == [(0, 60), (0, 40)]
