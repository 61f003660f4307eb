"""Figures of the source tree: size, import cycles, repeated class names, single-use modules.

Run `python scripts/figures.py` for the working tree. For another commit:

    git archive COMMIT src | tar -x -C FOLDER && python scripts/figures.py FOLDER

`--list` names what is counted. `--check` prints only cycles and repeated names, and fails if there
are any.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "lancelake"
GENERATED = f"{PACKAGE}.proto"
# pylance fixes the names of this face.
FACE = f"{PACKAGE}.pylance"

Imports = Mapping[str, set[str]]
"""Module -> modules of the package that it imports."""


def main(root: Path, *, lists: bool = False) -> None:
    """Print the figures of the tree below a root."""
    trees = parsed(root / "src")
    imports = {name: set(imported(name, tree, trees)) for name, tree in trees.items()}
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in _files(root / "src"))
    print(f"modules: {len(trees)}\nlines: {lines}")
    found = {
        "packages whose parts import each other in a cycle": cycles(imports),
        "public class names defined more than once": repeated_classes(trees),
        "modules imported by exactly one other": single_use(imports),
    }
    for title, names in found.items():
        print(f"{title}: {len(names)}")
        if lists:
            print("".join(f"  {name}\n" for name in names), end="")


def check(root: Path) -> int:
    """Print import cycles and repeated class names; return 1 if there are any."""
    trees = parsed(root / "src")
    imports = {name: set(imported(name, tree, trees)) for name, tree in trees.items()}
    found = [f"import cycle in {cycle}" for cycle in cycles(imports)]
    found += [f"class name defined more than once: {name}" for name in repeated_classes(trees)]
    print("".join(f"{line}\n" for line in found), end="")
    return 1 if found else 0


def parsed(src: Path) -> dict[str, ast.Module]:
    """Return every module of the package, except generated ones."""
    return {
        ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in _files(src)
    }


def imported(name: str, tree: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a module imports, those for type checkers included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                found = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str() as module, names=aliases):
                members = [f"{module}.{alias.name}" for alias in aliases]
                found = [member if member in known else module for member in members]
            case _:
                continue
        yield from (other for other in found if other in known and other != name)


def cycles(imports: Imports) -> list[str]:
    """Return the packages in which a part, with all below it, leads back to itself by imports."""
    parts: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, others in imports.items():
        for other in others:
            parent, mine, theirs = _siblings(importer, other)
            if mine and theirs:
                parts[parent][mine].add(theirs)
    return [f"{parent}: {cycle}" for parent in sorted(parts) if (cycle := _cycle(parts[parent]))]


def repeated_classes(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return public names of classes with the modules that define them, when these are several."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, tree in sorted(trees.items()):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name] += [] if module.startswith(FACE) else [module]
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if found[1:]]


def single_use(imports: Imports) -> list[str]:
    """Return the modules that exactly one other imports."""
    users: dict[str, set[str]] = defaultdict(set)
    for importer, others in imports.items():
        for other in others:
            users[other].add(importer)
    return sorted(f"{name} <- {min(found)}" for name, found in users.items() if len(found) == 1)


def _files(src: Path) -> list[Path]:
    generated = src / Path(*GENERATED.split("."))
    paths = sorted((src / PACKAGE).rglob("*.py"))
    return [path for path in paths if not path.is_relative_to(generated)]


def _siblings(importer: str, other: str) -> tuple[str, str, str]:
    """Return the nearest common package of two modules, and the part of it that each is in."""
    mine, theirs = importer.split("."), other.split(".")
    pairs = zip(mine, theirs, strict=False)
    common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs)))
    parts = [".".join(path[common : common + 1]) for path in (mine, theirs)]
    return ".".join(mine[:common]), parts[0], parts[1]


def _cycle(graph: Imports) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    arguments.add_argument("--list", action="store_true", dest="lists")
    arguments.add_argument("--check", action="store_true")
    given = arguments.parse_args(sys.argv[1:])
    if given.check:
        sys.exit(check(given.root))
    main(given.root, lists=given.lists)
