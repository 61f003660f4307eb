"""Diagrams of the documentation: Mermaid in the pages, SVG pictures in the site.

As a hook of mkdocs, it replaces each diagram by its picture, so that the site needs no script of
another host. `python scripts/diagrams.py mermaid.min.js` draws the pictures with Chromium.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PICTURES = Path("docs") / "images" / "diagrams"
FENCE = re.compile(r"^```mermaid\n(?P<source>.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r'<pre class="mermaid"><code>(?P<source>.*?)</code></pre>', re.DOTALL)
_WIDTH = re.compile(r"max-width: ([0-9.]+)px")
_LEAST = 0.55
_TITLE = re.compile(r"^ *accTitle: *(?P<title>.+)$", re.MULTILINE)
_DRAW = """
const [source, name, done] = arguments;
mermaid.initialize({
  startOnLoad: false, theme: "neutral", securityLevel: "strict", deterministicIds: true,
  fontFamily: "sans-serif",
});
mermaid.render(name, source).then(found => done(found.svg), error => done("error: " + error));
"""


def on_page_content(html: str, **_: Any) -> str:
    """Replace the diagrams of a page by their pictures."""

    def picture(block: re.Match[str]) -> str:
        source = unescape(block["source"])
        svg = _legible((ROOT / picture_of(source)).read_text(encoding="utf-8"))
        return f'<div class="diagram" role="img" aria-label="{escape(title(source))}">{svg}</div>'

    return BLOCK.sub(picture, html)


def _legible(svg: str) -> str:
    """Return a picture that shrinks with the page, but not until its text is too small to read."""
    return _WIDTH.sub(lambda w: f"min-width: {float(w[1]) * _LEAST:.0f}px; {w[0]}", svg, count=1)


def title(source: str) -> str:
    """Return what a diagram shows, for readers who cannot see it."""
    found = _TITLE.search(source)
    if found is None:
        raise ValueError(f"a diagram has no accTitle: {source[:60]!r}")
    return found["title"]


def picture_of(source: str) -> Path:
    """Return the path of the picture of a diagram, which depends on its text only."""
    digest = hashlib.sha256(source.strip().encode()).hexdigest()
    return PICTURES / f"{digest[:16]}.svg"


def sources(root: Path) -> Iterator[str]:
    """Yield the diagrams of all pages."""
    for page in sorted((root / "docs").rglob("*.md")):
        for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
            yield fence["source"]


def draw(root: Path, mermaid: Path) -> None:
    """Draw the pictures that are missing, and remove those that no page shows."""
    pictures = {picture_of(source): source for source in sources(root)}
    for path in (root / PICTURES).glob("*.svg"):
        if path.relative_to(root) not in pictures:
            path.unlink()
    missing = {path: text for path, text in pictures.items() if not (root / path).exists()}
    if not missing:
        return
    (root / PICTURES).mkdir(parents=True, exist_ok=True)
    browser = _browser(mermaid)
    try:
        for path, source in missing.items():
            svg = browser.execute_async_script(_DRAW, source, f"d{path.stem}")
            if svg.startswith("error"):
                sys.exit(f"{svg}\n{source}")
            (root / path).write_text(svg + "\n", encoding="utf-8")
            print(f"drew {path}: {title(source)}")
    finally:
        browser.quit()


def _browser(mermaid: Path) -> Any:
    from selenium import webdriver  # noqa: PLC0415  # only to draw

    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu"):
        options.add_argument(flag)
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    browser = webdriver.Chrome(options, service)
    browser.set_script_timeout(600)
    page = mermaid.with_name("page.html")
    page.write_text(f'<!doctype html><script src="{mermaid.name}"></script>', encoding="utf-8")
    browser.get(page.resolve().as_uri())
    return browser


if __name__ == "__main__":
    draw(ROOT, Path(sys.argv[1]))
