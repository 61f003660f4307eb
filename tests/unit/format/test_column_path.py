"""Paths of columns put together and taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidRequestError
from lancelake.format.schema import (
    comma_parts,
    join_list,
    join_path,
    quote_segment,
    quoted_name,
    quoted_path,
    split_list,
    split_path,
)

NAMES = st.lists(st.text("ab.` ", min_size=1), min_size=1)


@given(NAMES)
def test_a_path_is_cut_into_the_names_it_was_put_together_from(names: list[str]) -> None:
    assert split_path(join_path(names)) == tuple(names)
    assert split_path(".".join(map(quoted_name, names))) == tuple(names)


def test_only_names_that_would_be_cut_are_quoted() -> None:
    assert [quote_segment(name) for name in ("a b", "a.b", "a`b")] == ["a b", "`a.b`", "`a``b`"]
    assert quoted_name("a b") == "`a b`"


def test_a_backtick_without_its_partner_is_refused() -> None:
    with pytest.raises(InvalidRequestError):
        split_path("`a")


def test_a_quoted_path_quotes_every_name() -> None:
    assert quoted_path(["a", "b.c", "", "d`e"]) == "`a`.`b.c`.``.`d``e`"


PATHS = st.lists(st.lists(st.text("ab.`, ", min_size=1), min_size=1))


@given(PATHS)
def test_a_list_is_split_into_the_paths_it_was_joined_from(paths: list[list[str]]) -> None:
    found = [list(split_path(path)) for path in split_list(join_list(paths))]
    assert found == paths


def test_empty_paths_are_left_out() -> None:
    assert split_list(" a, ,`b,c`.d,") == ("a", "`b,c`.d")
    assert comma_parts("a,,b") == ("a", "", "b")
