"""Deletion files: values, path and JSON as in official releases."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.fragment_metadata import DeletionFile, from_entry, to_entry
from tests.strategies import format_values

FILE = DeletionFile(1, 2, "bitmap", 5, 7)
TEXT = '{"read_version":1,"id":2,"file_type":"bitmap","num_deleted_rows":5,"base_id":7}'


def test_values_can_be_read():
    shown = (FILE.read_version, FILE.id, FILE.file_type, FILE.num_deleted_rows, FILE.base_id)

    assert shown == (1, 2, "bitmap", 5, 7)


def test_a_file_is_in_the_table_unless_a_base_is_given():
    assert DeletionFile(1, 2, "array", 5).base_id is None


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        FILE.id = 3


def test_the_json_is_the_official_one():
    assert FILE.json() == TEXT


def test_the_json_can_be_read():
    assert DeletionFile.from_json(TEXT) == FILE


def test_the_count_of_rows_may_be_unknown():
    text = '{"read_version":1,"id":2,"file_type":"array","num_deleted_rows":null}'

    file = DeletionFile.from_json(text)

    assert (file.num_deleted_rows, repr(file)) == (None, "DeletionFile(type='array')")


def test_it_is_printed_with_type_and_rows():
    assert repr(FILE) == "DeletionFile(type='bitmap', num_deleted_rows=5)"


@pytest.mark.parametrize(
    ("file_type", "base", "path"),
    [
        ("array", None, "_deletions/3-1-2.arrow"),
        ("bitmap", None, "_deletions/3-1-2.bin"),
        ("bitmap", "x", "x/_deletions/3-1-2.bin"),
        ("bitmap", "/x/y/", "x/y/_deletions/3-1-2.bin"),
        ("bitmap", "a%20b", "a b/_deletions/3-1-2.bin"),
    ],
)
def test_the_path_is_below_the_base(file_type, base, path):
    assert DeletionFile(1, 2, file_type, 5).path(3, base) == path


@pytest.mark.parametrize("base", ["s3://x/y", "a//b"])
def test_a_base_with_an_empty_segment_is_refused(base):
    with pytest.raises(InvalidRequestError):
        FILE.path(3, base)


def test_files_with_other_values_are_not_equal():
    assert DeletionFile(1, 2, "array", 5) != DeletionFile(1, 2, "array", 6)
    assert FILE != TEXT


def test_equal_files_have_one_hash():
    assert len({FILE, DeletionFile.from_json(TEXT)}) == 1


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, "foo", 5),
        (-1, 2, "array", 5),
        (1 << 64, 2, "array", 5),
        (1, 2, "array", 5, 1 << 32),
    ],
)
def test_impossible_values_are_refused(values):
    with pytest.raises(InvalidRequestError):
        DeletionFile(*values)


@pytest.mark.parametrize("values", [("1", 2, "array", 5), (1, 2, "array", None)])
def test_values_of_the_wrong_type_are_refused(values):
    with pytest.raises(TypeError):
        DeletionFile(*values)


@pytest.mark.parametrize("text", ["x", "{}", "[]", '{"read_version":"1","id":2}'])
def test_json_of_something_else_is_refused(text):
    with pytest.raises(InvalidRequestError):
        DeletionFile.from_json(text)


@given(format_values.deletion_files())
def test_an_entry_of_the_format_comes_back_whole(entry):
    assert to_entry(from_entry(entry)) == entry


@given(format_values.deletion_files())
def test_pickle_keeps_everything(entry):
    assert to_entry(pickle.loads(pickle.dumps(from_entry(entry)))) == entry


@given(format_values.deletion_files())
def test_json_keeps_the_public_values(entry):
    shown = from_entry(entry)

    assert DeletionFile.from_json(shown.json()) == shown
