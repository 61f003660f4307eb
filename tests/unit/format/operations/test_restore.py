"""Codec of Restore: the version to restore."""

from __future__ import annotations

import pytest

from lancelake.format.operations import Restore
from tests.unit.format.golden.files import RELEASES, committed


@pytest.mark.parametrize("release", RELEASES)
def test_the_version_is_the_one_that_was_restored(release):
    assert committed(release, "restore").operation == Restore(version=3)
