"""Data file versions in their three notations."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.fragment import (
    FileVersion,
    only_version,
    version_from_name,
    version_from_numbers,
)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("0.1", FileVersion.LEGACY),
        ("0.3", FileVersion.V2_0),
        ("2.0", FileVersion.V2_0),
        ("2.1", FileVersion.V2_1),
        ("2.2", FileVersion.V2_2),
        ("2.3", FileVersion.V2_3),
        ("legacy", FileVersion.LEGACY),
        ("Stable", FileVersion.V2_1),
        ("next", FileVersion.V2_2),
    ],
)
def test_a_version_is_known_by_name(name, version):
    assert version_from_name(name) is version


@pytest.mark.parametrize("name", ["", "2", "2.9", "3.0", "newest"])
def test_a_name_that_is_not_known_is_refused(name):
    with pytest.raises(UnsupportedError):
        version_from_name(name)


@pytest.mark.parametrize(
    ("numbers", "version"),
    [
        ((0, 0), FileVersion.LEGACY),
        ((0, 1), FileVersion.LEGACY),
        ((0, 2), FileVersion.LEGACY),
        ((0, 3), FileVersion.V2_0),
        ((2, 0), FileVersion.V2_0),
        ((2, 1), FileVersion.V2_1),
        ((2, 2), FileVersion.V2_2),
        ((2, 3), FileVersion.V2_3),
    ],
)
def test_a_version_is_known_by_its_numbers(numbers, version):
    assert version_from_numbers(*numbers) is version


@pytest.mark.parametrize("numbers", [(0, 4), (1, 0), (2, 4), (3, 0)])
def test_numbers_that_are_not_known_are_refused(numbers):
    with pytest.raises(UnsupportedError):
        version_from_numbers(*numbers)


@pytest.mark.parametrize("version", list(FileVersion))
def test_the_numbers_of_a_version_lead_back_to_it(version):
    assert version_from_numbers(*version.numbers) is version


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (FileVersion.LEGACY, False),
        (FileVersion.V2_0, False),
        (FileVersion.V2_1, True),
        (FileVersion.V2_2, True),
        (FileVersion.V2_3, True),
    ],
)
def test_files_list_leaves_only_since_2_1(version, expected):
    assert version.leaves_only is expected


def test_the_only_version_of_files_is_theirs():
    assert only_version({FileVersion.V2_1}) is FileVersion.V2_1


def test_files_of_two_versions_have_no_common_one():
    with pytest.raises(CorruptTableError):
        only_version({FileVersion.LEGACY, FileVersion.V2_0})
