"""Row id sequences of fragments."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.errors import CorruptTableError
from lancelake.format import rowids
from lancelake.format.rowids import Array, Range, RowIdSequence
from tests.unit.format.golden.files import RELEASES, manifest


def golden(release: str, step: str) -> list[list[int]]:
    found = []
    for fragment in manifest(release, step).manifest.fragments:
        assert isinstance(fragment.row_ids, bytes)
        assert fragment.physical_rows is not None
        sequence = RowIdSequence.decode(fragment.row_ids, physical_rows=fragment.physical_rows)
        found.append(sequence.values().tolist())
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_appended_rows_take_the_next_ids(release):
    assert golden(release, "stable_append")[-1] == list(range(100, 120))


@pytest.mark.parametrize("release", RELEASES)
def test_updated_rows_keep_their_ids(release):
    assert golden(release, "stable_append")[1] == list(range(0, 100, 3))


@pytest.mark.parametrize("release", RELEASES)
def test_deleted_rows_keep_their_place(release):
    assert golden(release, "stable_delete")[0] == list(range(100))


@pytest.mark.parametrize("release", RELEASES)
def test_compacted_rows_keep_their_ids(release):
    (merged,) = golden(release, "stable_rewrite")

    assert sorted(merged) == [i for i in range(120) if not (i < 50 and i % 7 == 0)]


@pytest.mark.parametrize("step", ["stable_create", "stable_update", "stable_append"])
@pytest.mark.parametrize("release", RELEASES)
def test_official_releases_choose_the_same_encoding(release, step):
    for fragment in manifest(release, step).manifest.fragments:
        assert isinstance(fragment.row_ids, bytes)
        values = RowIdSequence(rowids.decode_row_ids(fragment.row_ids)).values()

        assert RowIdSequence.of(values).encode() == fragment.row_ids


def test_segments_follow_each_other():
    parts = (Range(start=5, end=7), Array(np.array([1, 0], dtype="<u8").tobytes()))

    assert RowIdSequence(parts).values().tolist() == [5, 6, 1, 0]


def test_a_sequence_without_segments_is_empty():
    assert RowIdSequence(()).values().tolist() == []


@pytest.mark.parametrize("physical_rows", [0, 2, 4])
def test_ids_for_more_or_fewer_rows_are_damage(physical_rows):
    data = RowIdSequence((Range(start=0, end=3),)).encode()

    with pytest.raises(CorruptTableError):
        RowIdSequence.decode(data, physical_rows=physical_rows)


def test_more_ids_than_a_machine_can_count_are_damage():
    full = Range(start=0, end=(1 << 64) - 1)

    with pytest.raises(CorruptTableError):
        RowIdSequence.decode(rowids.encode_row_ids((full, full)), physical_rows=3)


def test_ids_that_came_as_values_are_one_segment():
    sequence = RowIdSequence.of(np.array([4, 5, 6], dtype=np.uint64))

    assert sequence.segments == (Range(start=4, end=7),)
