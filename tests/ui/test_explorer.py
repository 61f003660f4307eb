"""Every view of the explorer in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

import lancelake
from tests.support.explorer_tables import HOSTILE
from tests.ui.conftest import LARGE
from tests.ui.page import Page

VIEWS = ("overview", "rows", "sql", "history", "schema", "fragments", "commit")


@pytest.fixture(autouse=True)
def _wide(page: Page) -> None:
    page.at(1280, "light")


def test_the_list_of_tables_shows_their_sizes(page: Page) -> None:
    page.show(None)
    assert "photos.lance" in page.text and "39" in page.text


def test_the_time_of_a_version_is_shown_in_full(page: Page, folder: Path) -> None:
    page.show("photos.lance", "overview")
    (newest,) = re.findall(r"\d{4}-\d\d-\d\d \S+", page.text)
    table = lancelake.dataset(folder / "photos.lance")
    assert lancelake.dataset(table.uri, asof=newest).version == table.version


def test_the_token_is_not_left_in_the_address(page: Page, address: str) -> None:
    token = address.partition("=")[2]
    assert token not in page.driver.current_url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_is_readable_and_has_names(
    page: Page, view: str, width: int, scheme: str
) -> None:
    page.messages()
    page.at(width, scheme)
    page.show("photos.lance", view, "?v=4" if view == "commit" else "")
    assert page.script("return document.documentElement.scrollWidth") <= width
    assert page.faint_texts() == []
    assert page.unnamed_controls() == []
    assert page.messages() == []


@pytest.mark.parametrize("view", VIEWS)
def test_markup_in_a_table_is_shown_as_text(page: Page, view: str) -> None:
    page.show("hostile.lance", view, "?v=1" if view == "commit" else "")
    if view == "sql":
        page.first("form button").click()
        page.first(".result table")
    if view in {"overview", "rows", "sql", "schema", "commit"}:
        assert HOSTILE in page.text
    assert page.script("return window.hacked") is None
    assert page.all("main img[src=x], main script") == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_official_table_is_shown(page: Page, view: str) -> None:
    page.messages()
    page.show("official.lance", view)
    assert page.all("main [role=alert]") == [] and page.messages() == []
    assert len(page.script("return document.querySelector('main').innerText")) > 0


def test_images_are_shown(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.until(
        "const i = document.querySelector('img.thumb[src]'); return i && i.naturalWidth === 2"
    )


def test_bytes_that_are_not_an_image_are_not_shown_as_one(page: Page) -> None:
    page.show("photos.lance", "rows", "?filter=id%3D1")
    assert page.all("img.thumb") == [] and "3c 73 63 72" in page.text


def test_a_long_text_is_read_whole_in_a_dialog(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.first("button.more").click()
    page.until("return document.querySelector('dialog pre').textContent.length === 1080")
    page.script("document.querySelector('dialog').close()")


def test_a_vector_is_drawn(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.first("button.vector").click()
    assert "4 numbers" in page.first("dialog").text
    page.script("document.querySelector('dialog').close()")


def test_a_filter_is_applied(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.first("input[name=filter]").send_keys("id > 37", Keys.ENTER)
    page.until("return document.querySelectorAll('.rows tbody tr').length === 2")
    page.until("return document.body.innerText.includes('2 rows match')")


def test_a_filter_that_is_not_valid_is_explained(page: Page) -> None:
    page.show("photos.lance", "rows", "?filter=nothing+%3E+1")
    assert "nothing" in page.first("[role=alert]").text


def test_words_are_found(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.first("input[name=text]").send_keys("harbour", Keys.ENTER)
    page.until("return document.body.innerText.includes('20 best rows')")


def test_rows_like_a_row_are_found(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.first("button[aria-label='Rows like row 0']").click()
    page.until("return document.body.innerText.includes('Rows near row 0 by embedding')")


def test_pages_of_rows_are_turned(page: Page) -> None:
    page.show("photos.lance", "rows")
    page.all("nav.pager button")[1].click()
    page.until("return document.querySelectorAll('.rows tbody tr').length === 14")


def test_a_query_runs_by_keyboard(page: Page) -> None:
    page.show("photos.lance", "sql")
    box = page.first("textarea")
    box.clear()
    box.send_keys("SELECT sum(id) AS total FROM dataset", Keys.CONTROL + Keys.ENTER)
    page.until("return document.querySelector('.result').innerText.includes('777')")


def test_the_graph_has_a_line_for_each_branch(page: Page) -> None:
    page.show("photos.lance", "history")
    assert len(page.all(".lanes circle")) == 6 and len(page.all(".lanes path")) == 1
    assert "launch" in page.text and "experiment" in page.text


def test_a_commit_is_reached_from_the_graph(page: Page) -> None:
    page.show("photos.lance", "history")
    page.first("a[aria-label='version 3']").click()
    page.until("return document.body.innerText.includes('Version 3')")
    assert "+10" in page.text


def test_the_heat_map_is_coloured_by_an_index(page: Page) -> None:
    page.show("photos.lance", "fragments")
    page.script(
        "const s = document.querySelector('#measure'); s.value = 'index:caption_idx';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert "3 of 4 fragments covered" in (
        page.first("canvas.heat").get_attribute("aria-label") or ""
    )


def test_fragments_are_chosen_by_keyboard(page: Page) -> None:
    page.show("photos.lance", "fragments")
    page.until("return document.body.innerText.includes('Fragment 0')")
    page.first("canvas.heat").send_keys(Keys.ARROW_RIGHT)
    page.until("return document.body.innerText.includes('Fragment 1')")


def test_many_versions_are_shown_by_page(page: Page) -> None:
    page.show("large.lance", "history")
    assert len(page.all(".versions li")) == 25
    page.first("main input[type=number]").send_keys("2", Keys.ENTER)
    page.until("return document.querySelector('.versions [aria-current]').textContent === '2'")


def test_many_fragments_are_drawn(page: Page) -> None:
    page.show("large.lance", "fragments")
    box = page.first("canvas.heat")
    assert int(box.get_attribute("height") or 0) > 0 and f"{LARGE:,} fragments" in page.text


def test_rows_that_are_not_merged_are_counted(page: Page) -> None:
    page.show("wal.lance", "mem-wal")
    assert "lancelake wal merge --flush" in page.text
    assert page.faint_texts() == [] and page.unnamed_controls() == []


def test_images_of_a_query_are_shown(page: Page) -> None:
    page.show("photos.lance", "sql")
    box = page.first("textarea")
    box.clear()
    box.send_keys("SELECT image FROM dataset", Keys.CONTROL + Keys.ENTER)
    page.until("const i = document.querySelector('img.thumb[src]'); return i && i.naturalWidth")


def test_the_keyboard_stays_at_the_chosen_view(page: Page) -> None:
    page.show("photos.lance", "overview")
    page.script("document.querySelectorAll('.tabs a')[4].focus()")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.until("return document.title.startsWith('Schema')")
    page.until("return document.activeElement.textContent === 'Schema'")


def test_the_theme_is_chosen(page: Page) -> None:
    page.show(None)
    color = "return getComputedStyle(document.body).backgroundColor"
    light = page.script(color)
    button = page.first("#theme")
    button.click()
    button.click()
    assert page.script("return document.documentElement.dataset.theme") == "dark"
    assert page.script(color) != light
    button.click()


def test_the_content_is_reached_by_the_skip_link(page: Page, address: str) -> None:
    page.driver.get("about:blank")
    page.open_address(address)
    page.first("body").send_keys(Keys.TAB)
    assert page.script("return document.activeElement.id") == "skip"
    page.first("#skip").send_keys(Keys.ENTER)
    assert page.script("return document.activeElement.id") == "main"


def test_a_page_of_another_origin_cannot_read(page: Page, address: str) -> None:
    other = page.base.replace("127.0.0.1", "localhost")
    page.driver.get(other)
    found = page.driver.execute_async_script(
        "const [base, done] = arguments;"
        "fetch(base + 'api/tables').then(() => done('read'), () => done('refused'))",
        page.base,
    )
    page.open_address(address)
    assert found == "refused"


def test_without_a_token_the_page_says_where_to_find_it(page: Page, address: str) -> None:
    page.script("localStorage.clear()")
    page.driver.get(f"{page.base}?without")
    page.until("return document.body.innerText.includes('no valid token')")
    page.open_address(address)
