"""Fragment metadata and its JSON as in official releases, without loss."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._values.fragment_metadata import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
    from_data_file,
    from_fragment,
    to_data_file,
    to_fragment,
)
from tests.strategies import format_values

FILE = DataFile("a.lance", [0, 1], [0, 1], 2, 1, 99)
FRAGMENT = FragmentMetadata(
    4,
    [FILE],
    10,
    DeletionFile(1, 2, "array", 3),
    RowIdMeta(b"\x01"),
    RowDatasetVersionMeta(b"\x02"),
    RowDatasetVersionMeta(b"\x03"),
)
SHOWN = {
    "id": 4,
    "files": [
        {
            "fields": [0, 1],
            "column_indices": [0, 1],
            "file_major_version": 2,
            "file_minor_version": 1,
            "file_size_bytes": 99,
            "base_id": None,
            "path": "a.lance",
        }
    ],
    "overlays": [],
    "physical_rows": 10,
    "deletion_file": {
        "read_version": 1,
        "id": 2,
        "file_type": "array",
        "num_deleted_rows": 3,
        "base_id": None,
    },
    "row_id_meta": {"Inline": [1]},
    "created_at_version_meta": {"inline": [2]},
    "last_updated_at_version_meta": {"inline": [3]},
}


def test_the_json_is_the_official_one():
    assert FRAGMENT.to_json() == SHOWN


def test_the_json_can_be_read():
    assert FragmentMetadata.from_json(json.dumps(SHOWN)) == FRAGMENT


def test_the_json_of_older_releases_can_be_read():
    older = {key: value for key, value in SHOWN.items() if key != "overlays"}
    older["created_at_version_meta"] = {"Inline": [2]}

    assert FragmentMetadata.from_json(json.dumps(older)) == FRAGMENT


@pytest.mark.parametrize(
    "text", ["x", "{}", "[]", '{"id":1,"physical_rows":1,"files":[{"path":"a"}]}']
)
def test_json_of_something_else_is_refused(text):
    with pytest.raises(InvalidRequestError):
        FragmentMetadata.from_json(text)


def test_json_with_overlays_is_refused():
    with pytest.raises(UnsupportedError):
        FragmentMetadata.from_json(json.dumps(SHOWN | {"overlays": [{}]}))


def test_a_fragment_with_overlays_cannot_be_written():
    with pytest.raises(UnsupportedError):
        to_fragment(replace(FRAGMENT, overlays=[object()]))


def test_rows_are_counted_without_deleted_ones():
    assert (FRAGMENT.num_deletions, FRAGMENT.num_rows) == (3, 7)


def test_a_fragment_without_a_deletion_file_has_all_its_rows():
    fragment = FragmentMetadata(1, [], 3)

    assert (fragment.num_deletions, fragment.num_rows) == (0, 3)


def test_rows_without_a_count_are_not_made_up():
    assert FragmentMetadata(1, [], None).num_rows is None


def test_it_is_printed_as_official_releases_print_it():
    fragment = FragmentMetadata(4, [FILE], 10, DeletionFile(1, 2, "array", 3))

    assert repr(fragment) == (
        "FragmentMetadata(id=4, files=[DataFile(path='a.lance', fields=[0, 1], "
        "column_indices=[0, 1], file_major_version=2, file_minor_version=1, "
        "file_size_bytes=99)], physical_rows=10, "
        "deletion_file=DeletionFile(type='array', num_deleted_rows=3), row_id_meta=None, "
        "created_at_version_meta=None, last_updated_at_version_meta=None, overlays=[])"
    )


def test_files_with_other_values_are_not_equal():
    assert DataFile("a", [1]) == DataFile("a", [1], [], 0, 0, None, None)
    assert DataFile("a", [1]) != DataFile("a", [1], base_id=3)


def test_a_path_is_a_string_that_pickles_as_one():
    assert FILE.path == "a.lance"
    assert type(pickle.loads(pickle.dumps(FILE.path))) is str


def test_a_path_may_still_be_called():
    with pytest.warns(DeprecationWarning):
        assert FILE.path() == "a.lance"


def test_field_ids_are_deprecated():
    with pytest.warns(DeprecationWarning):
        assert FILE.field_ids() == [0, 1]


def test_data_files_are_deprecated():
    with pytest.warns(DeprecationWarning):
        assert FRAGMENT.data_files() == [FILE]


@given(format_values.fragments())
def test_a_fragment_of_the_format_comes_back_whole(fragment):
    assert to_fragment(from_fragment(fragment)) == fragment


@given(format_values.fragments())
def test_pickle_keeps_everything(fragment):
    shown = pickle.loads(pickle.dumps(from_fragment(fragment)))

    assert (shown, to_fragment(shown)) == (from_fragment(fragment), fragment)


@given(format_values.fragments())
def test_a_changed_fragment_keeps_what_is_not_shown(fragment):
    changed = replace(from_fragment(fragment), id=3)

    assert to_fragment(changed) == replace(fragment, id=3)


@given(format_values.fragments())
def test_json_keeps_the_public_values(fragment):
    shown = from_fragment(fragment)

    assert FragmentMetadata.from_json(json.dumps(shown.to_json())) == shown


@given(format_values.data_files())
def test_a_data_file_of_the_format_comes_back_whole(file):
    assert to_data_file(from_data_file(file)) == file
