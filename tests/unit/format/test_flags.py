"""Tables are refused if and only if their feature flags are unknown."""

from __future__ import annotations

import pytest

from lancelake.errors import UnsupportedError
from lancelake.format.manifest import FeatureFlags, ensure_readable, ensure_writable


@pytest.mark.parametrize("bit", [1, 2, 4, 8, 16, 32, 128, 256, 1024, 63])
def test_flags_that_do_not_change_rows_can_be_read(bit):
    ensure_readable(bit)


@pytest.mark.parametrize("bit", [64, 512, 2048, 4096, 1 << 63])
def test_flags_that_may_change_rows_cannot_be_read(bit):
    with pytest.raises(UnsupportedError):
        ensure_readable(bit | 1)


@pytest.mark.parametrize("bit", [1, 2, 4, 8, 16, 32])
def test_flags_of_the_4_line_can_be_written(bit):
    ensure_writable(bit)


@pytest.mark.parametrize("bit", [64, 128, 256, 512, 1024, 2048, 1 << 63])
def test_flags_of_later_lines_cannot_be_written(bit):
    with pytest.raises(UnsupportedError):
        ensure_writable(bit | 1)


def test_the_error_names_the_bits_that_are_not_known():
    with pytest.raises(UnsupportedError) as caught:
        ensure_readable(64 | FeatureFlags.DELETION_FILES)

    assert caught.value.facts["flags"] == 64
