"""The page of the explorer, as its tests use it."""

from __future__ import annotations

from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

_PATIENCE_S = 300
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
_READY = """
return document.querySelector("main").children.length && !document.querySelector("[aria-busy]");
"""
_CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (rgb) => {
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = rgb.slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] === 1) return color;
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
  const seen = node.checkVisibility() && !node.closest(".visually-hidden, .skip, :disabled, .off");
  if (!own || !seen) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.push(`${node.className} ${node.textContent.slice(0, 30)} ${ratio}`);
}
return found;
"""
_UNNAMED = """
const named = (node) => node.getAttribute("aria-label") || node.textContent.trim() || node.title
  || (node.labels && node.labels.length) || node.getAttribute("aria-labelledby");
const kinds = "a, button, input, select, textarea, summary, [role=region], nav";
return [...document.querySelectorAll(kinds)]
  .filter((node) => node.checkVisibility() && !named(node))
  .map((node) => node.outerHTML.slice(0, 120));
"""


def start_browser(chromium: str, driver: str) -> Chrome:
    """Start a browser without a window."""
    options = Options()
    options.binary_location = chromium
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(driver))


class Page:
    """Opens views of tables, and waits until they are shown."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self.base = address.partition("#")[0]
        self.tables: dict[str, str] = {}

    def open_address(self, address: str) -> None:
        """Load the page anew, and read the list of tables."""
        self.driver.get(address)
        self._wait_ready()
        links = self.all("main th a")
        self.tables = {a.text: (a.get_attribute("href") or "").split("/")[-2] for a in links}

    def show(self, table: str | None, view: str = "", query: str = "") -> None:
        """Open a view by its address."""
        place = "#/" if table is None else f"#/t/{self.tables[table]}/{view}{query}"
        self.driver.execute_script("location.hash = '#/?x'")
        self._wait_ready()
        self.driver.execute_script("location.hash = arguments[0]", place)
        self.until("return !location.hash.endsWith('?x')")
        self._wait_ready()

    def at(self, width: int, scheme: str) -> None:
        """Set the width of the window and the colours that the system prefers."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def script(self, text: str, *arguments: Any) -> Any:
        """Run a script."""
        return self.driver.execute_script(text, *arguments)

    def until(self, text: str) -> Any:
        """Wait until a script returns a value."""
        return WebDriverWait(self.driver, _PATIENCE_S).until(lambda d: d.execute_script(text))

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of a selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def first(self, selector: str) -> WebElement:
        """Wait for an element."""
        return WebDriverWait(self.driver, _PATIENCE_S).until(
            lambda d: (
                d.find_element(By.CSS_SELECTOR, selector)
                if d.find_elements(By.CSS_SELECTOR, selector)
                else None
            )
        )

    @property
    def text(self) -> str:
        """Text that is visible."""
        found: str = self.script("return document.body.innerText")
        return found

    def faint_texts(self) -> list[str]:
        """Return texts whose contrast with their background is below 4.5."""
        found: list[str] = self.script(_CONTRAST)
        return found

    def unnamed_controls(self) -> list[str]:
        """Return controls without a name for a screen reader."""
        found: list[str] = self.script(_UNNAMED)
        return found

    def messages(self) -> list[str]:
        """Return what the browser complained about since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def _wait_ready(self) -> None:
        self.until(_READY)
