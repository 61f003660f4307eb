"""Base paths show their values as in official releases."""

from __future__ import annotations

import pytest
from hypothesis import given

from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments import DatasetBasePath, from_base_path, to_base_path
from tests.strategies import format_values


def test_a_base_path_without_an_id_asks_for_one():
    assert DatasetBasePath("x").id == 0


def test_it_is_printed_as_official_releases_print_it():
    assert repr(DatasetBasePath("s3://a", "n", True, 4)) == (
        'DatasetBasePath(id=4, name=Some("n"), path=s3://a, is_dataset_root=true)'
    )
    assert repr(DatasetBasePath("x")) == (
        "DatasetBasePath(id=0, name=None, path=x, is_dataset_root=false)"
    )


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        DatasetBasePath("x").id = 3


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_an_impossible_id_is_refused(number):
    with pytest.raises(InvalidRequestError):
        DatasetBasePath("x", id=number)


@given(format_values.base_paths())
def test_a_base_path_of_the_format_comes_back_whole(base):
    assert to_base_path(from_base_path(base)) == base
