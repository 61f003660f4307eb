"""The explorer in Chromium, driven by Selenium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.explorer_tables import (
    build_hostile,
    build_large,
    build_mem_wal,
    build_photos,
)
from tests.support.official import Official
from tests.support.sound_tables import build_sound
from tests.ui.page import Page, start_browser

LARGE = int(os.environ.get("LANCELAKE_UI_LARGE", "200"))
"""Number of versions and of fragments of the largest table."""
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="session")
def folder(official_14: Official, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tables."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed; `make test-ui` installs them")
    root = tmp_path_factory.mktemp("browser")
    build_photos(root / "photos.lance")
    build_hostile(root / "hostile.lance")
    build_sound(official_14, root / "official.lance")
    build_mem_wal(root / "wal.lance")
    build_large(root / "large.lance", LARGE)
    return root


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    """Return the address of a server."""
    command = [sys.executable, "-m", "lancelake", "ui", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield next(line for line in server.stdout if line.startswith("http")).strip()
        server.terminate()


@pytest.fixture(scope="session")
def page(address: str) -> Iterator[Page]:
    """Return the page, opened with the token."""
    driver = start_browser(CHROMIUM or "", DRIVER or "")
    found = Page(driver, address)
    found.open_address(address)
    yield found
    driver.quit()
