"""Modules and calls named on the architecture page exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts import figures

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS, *COURSES = re.findall(r"^```mermaid\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ARROWS = re.compile(r"^ +([\w.]+) --> ([\w.]+)$", re.MULTILINE)
NODES = re.compile(r"^ +(\w+)\[\"([\w, ]+)", re.MULTILINE)


def layers() -> list[list[str]]:
    """Return the layers of the contract, the uppermost first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def packages() -> set[str]:
    """Return the packages and modules of the contract that exist."""
    source = ROOT / "src" / "lancelake"
    listed = {name for layer in layers() for name in layer}
    return {n for n in listed if (source / n).is_dir() or (source / f"{n}.py").exists()}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    trees = figures.parsed(ROOT / "src")
    return {name: set(figures.imported(name, tree, trees)) for name, tree in trees.items()}


@pytest.mark.parametrize(
    ("caller", "called"), sorted({hop for course in COURSES for hop in ARROWS.findall(course)})
)
def test_each_hop_is_an_import(imports: dict[str, set[str]], caller: str, called: str) -> None:
    assert f"lancelake.{called}" in imports[f"lancelake.{caller}"]


def test_the_layers_are_the_packages_of_the_contract() -> None:
    drawn = {name for _, text in NODES.findall(LAYERS) for name in text.split(" (")[0].split(", ")}
    assert {name.strip() for name in drawn} == packages()


def test_the_decision_about_layers_names_the_packages_of_the_contract() -> None:
    page = (DECISIONS / "0010-layers-and-import-contract.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [a-z]+ \| (.*?) \|", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == packages()


def test_the_decision_about_java_names_every_class() -> None:
    page = next(DECISIONS.glob("0037-*.md")).read_text(encoding="utf-8")
    classes = (ROOT / "java" / "lancelake").glob("*.java")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == {c.stem for c in classes}


def test_each_arrow_of_the_layers_points_down() -> None:
    ranks = {name: i for i, layer in enumerate(layers()) for name in layer}
    ranks["ground"] = len(layers()) - 1
    arrows = ARROWS.findall(LAYERS)
    assert arrows
    assert [(a, b) for a, b in arrows if ranks[a] >= ranks[b]] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[a-z_]+\.)+[a-z_]+)`", PAGE))))
def test_each_module_in_the_text_is_there(imports: dict[str, set[str]], name: str) -> None:
    is_elsewhere = name == "lance.file" or name.endswith((".py", ".txt", ".toml"))
    assert is_elsewhere or f"lancelake.{name}" in imports
