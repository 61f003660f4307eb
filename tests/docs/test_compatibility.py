"""The tables of the compatibility page are those of the tests."""

from __future__ import annotations

import pytest

from scripts import compatibility_page
from scripts.compatibility_page import INTEROP, PAGE
from tests.support.official import RELEASES


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == compatibility_page.page(text), "run python -m scripts.compatibility_page"


def test_every_suite_with_a_release_is_listed() -> None:
    listed = compatibility_page.suites().splitlines()[2:]
    using = [p for p in INTEROP.glob("test_*.py") if "official" in p.read_text(encoding="utf-8")]
    assert len(listed) >= 0.9 * len(using)
    for line in listed:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0] and set(cells[1:-1]) & {"yes"} and int(cells[-1]) > 0
        assert len(cells) == len(RELEASES) + 2


def test_a_page_without_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="suites"):
        compatibility_page.page("# Compatibility\n")
