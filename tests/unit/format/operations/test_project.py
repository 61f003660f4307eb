"""Codec of Project: dropped and renamed columns as the next schema."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Project
from tests.unit.format.golden.files import RELEASES, committed


def golden(release: str, step: str) -> Project:
    operation = committed(release, step).operation
    assert isinstance(operation, Project)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_a_renamed_column_keeps_its_id(release):
    assert [(f.name, f.id) for f in golden(release, "project_rename").schema.fields][1] == (
        "label",
        1,
    )


@pytest.mark.parametrize("release", RELEASES)
def test_a_dropped_column_is_gone(release):
    assert "tags" not in golden(release, "project_drop").schema.names


@pytest.mark.parametrize(("release", "expected"), [("4.0.2", False), ("14.0.2", True)])
def test_the_14_line_says_that_no_column_became_strict(release, expected):
    assert golden(release, "project_drop").preserves_nullability is expected
