"""Row ids and versions of a fragment: display, JSON and construction as in official releases."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.fragment import ExternalFile
from lancelake.pylance._values.row_sequences import (
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    to_stored,
)
from tests.strategies.format_values import u64

BOTH = pytest.mark.parametrize("kind", [RowIdMeta, RowDatasetVersionMeta])
EXTERNAL = ExternalFile(path="a", offset=1, size=2)


def shown(value: object) -> str:
    """Name a case by its values: an array prints its address too."""
    return str(value.to_pylist() if isinstance(value, pa.Array | pa.ChunkedArray) else value)


def test_row_ids_are_json_under_a_capital():
    assert RowIdMeta(b"\x01\x02").json() == '{"Inline":[1,2]}'


def test_versions_are_json_under_a_small_letter():
    assert RowDatasetVersionMeta(b"\x01\x02").json() == '{"inline":[1,2]}'


@BOTH
@pytest.mark.parametrize("name", ["Inline", "inline"])
def test_the_json_of_every_release_is_read(kind, name):
    assert kind.from_json(f'{{"{name}":[1,2]}}') == kind(b"\x01\x02")


@BOTH
@pytest.mark.parametrize("name", ["External", "external"])
def test_a_slice_of_a_file_is_read(kind, name):
    text = f'{{"{name}":{{"path":"a","offset":1,"size":2}}}}'

    assert to_stored(kind.from_json(text)) == EXTERNAL


@BOTH
@pytest.mark.parametrize("stored", [b"", b"\x01\xff", EXTERNAL])
def test_json_dictionary_and_pickle_keep_what_is_stored(kind, stored):
    meta = kind(stored)

    assert kind.from_json(meta.json()) == meta
    assert kind.from_dict(meta.asdict()) == meta
    assert pickle.loads(pickle.dumps(meta)) == meta


@BOTH
@pytest.mark.parametrize(
    "text",
    ["x", "3", "{}", '{"Inline":[256]}', '{"Inline":[1],"x":2}', '{"External":{"path":"a"}}'],
)
def test_json_of_something_else_is_refused(kind, text):
    with pytest.raises(InvalidRequestError):
        kind.from_json(text)


@BOTH
def test_a_way_of_storing_that_is_not_known_is_refused(kind):
    with pytest.raises(UnsupportedError):
        kind.from_json('{"Column":{}}')


def test_the_same_bytes_of_another_kind_are_not_equal():
    assert RowIdMeta(b"\x01") != RowDatasetVersionMeta(b"\x01")


def test_equal_values_have_one_hash():
    assert len({RowIdMeta(b"\x01"), RowIdMeta(b"\x01")}) == 1


@pytest.mark.parametrize(
    ("row_ids", "encoded"),
    [
        ([], ""),
        (range(9, 3), ""),
        (range(3, 9), "0a060a0408031009"),
        (range(0, 10, 2), "0a081a0610091a025501"),
        ([3, 1, 2], "0a0e2a0c0a0a0801120602000000" + "0100"),
        (pa.array([1, 2]), "0a060a0408011003"),
        (pa.chunked_array([[1], [2]]), "0a060a0408011003"),
        ([0, 1, 2, 3, 9], "0a081a06100a1a020f02"),
    ],
    ids=shown,
)
def test_row_ids_are_encoded_as_official_releases_encode_them(row_ids, encoded):
    assert to_stored(RowIdSequence(row_ids).to_inline_metadata()).hex() == encoded


@pytest.mark.parametrize(
    "row_ids",
    [[1, 1], [-1], [1 << 64], pa.array([1, None]), pa.array([-1]), range(-3, 2)],
    ids=shown,
)
def test_row_ids_that_no_row_can_have_are_refused(row_ids):
    with pytest.raises(InvalidRequestError):
        RowIdSequence(row_ids)


@pytest.mark.parametrize("row_ids", [3, None, ["a"], [1.0], pa.array([1.5])], ids=shown)
def test_anything_but_numbers_is_refused(row_ids):
    with pytest.raises(TypeError):
        RowIdSequence(row_ids)


def test_row_ids_outside_the_manifest_cannot_be_read():
    with pytest.raises(UnsupportedError):
        RowIdSequence.from_inline_metadata(RowIdMeta(EXTERNAL))


def test_a_long_sequence_is_printed_in_part():
    assert repr(RowIdSequence([5, 4])) == "RowIdSequence([5, 4])"
    assert repr(RowIdSequence(range(11))) == (
        "RowIdSequence([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...], len=11)"
    )


def test_sequences_are_compared_by_their_ids():
    assert RowIdSequence([1, 2, 3]) == RowIdSequence(range(1, 4))
    assert RowIdSequence([1, 2]) != RowIdSequence([2, 1])
    assert RowIdSequence([1]) != [1]
    assert len({RowIdSequence([1, 2]), RowIdSequence(range(1, 3))}) == 1


@given(st.lists(u64, unique=True, max_size=20))
def test_the_ids_come_back_in_order(row_ids):
    sequence = RowIdSequence(row_ids)

    assert (list(sequence), len(sequence)) == (row_ids, len(row_ids))
    assert sequence.to_pyarrow() == pa.array(row_ids, pa.uint64())
    assert pickle.loads(pickle.dumps(sequence)) == sequence


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([1, 2, 1], "Row ids must be unique, but 1 appears"),
        (pa.array([1, None]), "Row ids must not be null"),
        (pa.array([1.5]), "an array of integers"),
        (pa.array([-1]), "fit in a uint64"),
        (range(-5, 5), "non-negative"),
        (5, "an iterable of integers"),
    ],
    ids=shown,
)
def test_problems_are_named_as_pylance_names_them(ids, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        RowIdSequence(ids)
