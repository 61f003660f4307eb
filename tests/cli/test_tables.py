"""Layout of tables in the available width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from lancelake.cli.report import Listing, TextColumn, cut, right


def _lines(listing: Listing, width: int) -> list[str]:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(listing)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_numbers_go_to_the_right_and_text_to_the_left() -> None:
    listing = Listing([right("rows"), TextColumn("name")])
    listing.add("7", "a")
    listing.add("12345", "longer")
    assert _lines(listing, 40) == [" rows  name", "    7  a", "12345  longer"]


def test_a_column_without_name_and_content_is_not_shown() -> None:
    listing = Listing([TextColumn("a"), TextColumn(""), TextColumn("b")])
    listing.add("1", "", "2")
    assert _lines(listing, 40) == ["a  b", "1  2"]


def test_what_may_be_cut_is_cut() -> None:
    listing = Listing([right("n"), cut("text")])
    listing.add("1", "x" * 50)
    assert _lines(listing, 20)[1] == "1  " + "x" * 16 + "…"


def test_what_is_optional_is_left_out_where_there_is_no_room() -> None:
    listing = Listing([TextColumn("keep"), right("extra", is_optional=True), cut("text")])
    listing.add("1234567890", "123456", "abcdefghij")
    assert _lines(listing, 22) == ["keep        text", "1234567890  abcdefghij"]


def test_room_is_shared_among_columns_that_are_cut() -> None:
    listing = Listing([cut("a"), cut("b")])
    listing.add("x" * 50, "y" * 50)
    assert _lines(listing, 42)[1] == "x" * 19 + "…  " + "y" * 19 + "…"


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")), max_size=30)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(26, 100))
def test_no_line_is_wider_than_asked_for(rows: list[tuple[str, str, str]], width: int) -> None:
    listing = Listing(
        [cut("a"), TextColumn("b", least=4), TextColumn("c", least=4, is_optional=True)]
    )
    for row in rows:
        listing.add(*row)
    assert all(Text(line).cell_len <= width for line in _lines(listing, width))
