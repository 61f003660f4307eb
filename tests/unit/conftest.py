"""Tables of these tests: a consistent one by official Lance, and copies of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.official import Official
from tests.support.sound_tables import build_sound


@pytest.fixture(scope="session")
def sound(official_14: Official, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table that is in order, and must stay so."""
    return build_sound(official_14, tmp_path_factory.mktemp("sound") / "sound.lance")


@pytest.fixture
def table(sound: Path, tmp_path: Path) -> Path:
    """Return a copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "table.lance"))
