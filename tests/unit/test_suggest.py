from __future__ import annotations

import pytest

from lancelake.errors import suggestion


@pytest.mark.parametrize(
    ("name", "meant"), [("pirce", "price"), ("PRICE", "price"), ("dayy", "day")]
)
def test_a_close_name_is_suggested(name: str, meant: str) -> None:
    assert suggestion(name, ["day", "price"], "columns") == f"Did you mean {meant}?"


def test_a_suggestion_has_the_case_of_the_known_name() -> None:
    assert suggestion("mergeschema", ["mergeSchema"], "options") == "Did you mean mergeSchema?"


def test_known_names_are_listed_when_none_is_close() -> None:
    assert suggestion("zzz", ["day", "price"], "columns") == "Known columns: day, price."


def test_no_known_name_is_said() -> None:
    assert suggestion("zzz", [], "tags") == "Known tags: none."


def test_many_names_are_not_listed() -> None:
    assert suggestion("zzz", [f"c{i}" for i in range(1000)], "columns") is None
