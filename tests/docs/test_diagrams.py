"""Diagrams of the pages have current pictures, and the site shows these."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest

from scripts import diagrams

ROOT = Path(__file__).parents[2]


def test_every_diagram_has_a_picture_and_every_picture_a_diagram() -> None:
    needed = {diagrams.picture_of(source) for source in diagrams.sources(ROOT)}
    found = {path.relative_to(ROOT) for path in (ROOT / diagrams.PICTURES).glob("*.svg")}
    assert (needed, len(needed) >= 10) == (found, True)


def test_a_page_shows_the_picture_with_a_title() -> None:
    source = next(diagrams.sources(ROOT))
    block = f'<p>before</p><pre class="mermaid"><code>{escape(source)}</code></pre><p>after</p>'
    html = diagrams.on_page_content(block)
    assert html.startswith('<p>before</p><div class="diagram" role="img" aria-label="')
    assert diagrams.title(source) in html
    assert "<svg" in html and "mermaid" not in html.partition("<svg")[0]
    assert html.endswith("</div><p>after</p>")


def test_a_diagram_without_a_title_is_refused() -> None:
    with pytest.raises(ValueError, match="accTitle"):
        diagrams.title("flowchart TD\n a --> b\n")


def test_pictures_refer_to_nothing_outside() -> None:
    for path in (ROOT / diagrams.PICTURES).glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "@import" not in text
        assert "url(http" not in text
