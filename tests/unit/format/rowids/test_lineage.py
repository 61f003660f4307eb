"""Version sequences of rows."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format import rowids
from lancelake.format.rowids import VersionSequence
from tests.unit.format.golden.files import RELEASES, manifest


@pytest.mark.parametrize("release", RELEASES)
def test_new_rows_have_the_version_that_brought_them(release):
    fragment = manifest(release, "stable_append").manifest.fragments[-1]
    assert isinstance(fragment.created_at_versions, bytes)

    assert VersionSequence.decode(fragment.created_at_versions, physical_rows=20).runs == ((20, 3),)


def test_versions_are_repeated_for_their_rows():
    assert VersionSequence(((2, 5), (1, 7))).values().tolist() == [5, 5, 7]


def test_rows_that_the_sequence_does_not_reach_have_its_last_version():
    data = rowids.encode_versions(((2, 5), (1, 7)))

    assert VersionSequence.decode(data, physical_rows=5).values().tolist() == [5, 5, 7, 7, 7]


def test_rows_without_any_run_have_version_1():
    assert VersionSequence.decode(b"", physical_rows=2).values().tolist() == [1, 1]


def test_versions_for_more_rows_than_there_are_are_damage():
    with pytest.raises(CorruptTableError):
        VersionSequence.decode(rowids.encode_versions(((3, 1),)), physical_rows=2)


def test_a_constant_sequence_is_one_run():
    assert VersionSequence.constant(4, rows=9).runs == ((9, 4),)


def test_the_length_is_that_of_all_runs():
    assert len(VersionSequence(((2, 5), (1, 7)))) == 3


def test_a_sequence_is_read_as_it_was_written():
    sequence = VersionSequence(((2, 5), (1, 7)))

    assert VersionSequence.decode(sequence.encode(), physical_rows=3) == sequence
