"""Lookup of Java, and the error when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.errors import UnsupportedError
from lancelake.spark.registration.java import ensure_java


def java_at(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "java").touch(mode=0o755)


def test_java_home_is_enough(tmp_path: Path) -> None:
    java_at(tmp_path / "bin")
    ensure_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_java_on_the_path_is_enough(tmp_path: Path) -> None:
    java_at(tmp_path / "tools")
    ensure_java({"PATH": str(tmp_path / "tools")})


def test_no_java_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Install Java 17"):
        ensure_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="JAVA_HOME is"):
        ensure_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
