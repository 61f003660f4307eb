"""Figures of the source tree: size, imports and their cycles, repeated names.

Run `python scripts/figures.py` for the working tree. For another commit:

    git archive COMMIT src | tar -x -C FOLDER && python scripts/figures.py FOLDER

`--list` names what is counted. `--check` prints only cycles, repeated classes and faces that import
too many modules of the core, and fails if there are any.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

PACKAGE = "lancelake"
GENERATED = f"{PACKAGE}.proto"
# pylance fixes the names of this face.
FACE = f"{PACKAGE}.pylance"

FACES = ("cli", "pylance", "spark", "ui")
FACE_LIMIT = 40
"""Modules of the core that a face may import: `core`, its values, and what is below both."""

Imports = Mapping[str, set[str]]
"""Module -> modules of the package that it imports."""


def main(root: Path, *, lists: bool = False) -> None:
    """Print the figures of the tree below a root."""
    trees = parsed(root / "src")
    imports = {name: set(imported(name, tree, trees)) for name, tree in trees.items()}
    lengths = [len(file.read_text(encoding="utf-8").splitlines()) for file in _files(root / "src")]
    lines = sum(lengths)
    print(
        f"modules: {len(trees)}\nlines: {lines}\nlines of the median module: {median(lengths):.0f}"
    )
    print(f"lines of imports: {sum(map(import_lines, trees.values())) / lines:.1%}")
    figures = {
        "packages whose parts import each other in a cycle": cycles(imports),
        "public class names defined more than once": repeated_classes(trees),
        "modules imported by exactly one other": single_use(imports),
        "file names that occur more than once": repeated_names(trees),
        **{
            f"modules of the core that {face} imports": face_imports(imports, face)
            for face in FACES
        },
    }
    for title, names in figures.items():
        print(f"{title}: {len(names)}")
        if lists:
            print("".join(f"  {name}\n" for name in names), end="")


def check(root: Path) -> int:
    """Print cycles, repeated class names and faces over their limit; return 1 if there are any."""
    trees = parsed(root / "src")
    imports = {name: set(imported(name, tree, trees)) for name, tree in trees.items()}
    problems = [f"import cycle in {cycle}" for cycle in cycles(imports)]
    problems += [f"class name defined more than once: {name}" for name in repeated_classes(trees)]
    for face in FACES:
        count = len(face_imports(imports, face))
        if count > FACE_LIMIT:
            problems.append(f"{face} imports {count} modules of the core, at most {FACE_LIMIT}")
    print("".join(f"{line}\n" for line in problems), end="")
    return 1 if problems else 0


def parsed(src: Path) -> dict[str, ast.Module]:
    """Return every module of the package, except generated ones."""
    return {
        ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in _files(src)
    }


def imported(name: str, tree: ast.Module, modules: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a module imports, those for type checkers included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                others = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str() as module, names=aliases):
                members = [f"{module}.{alias.name}" for alias in aliases]
                others = [member if member in modules else module for member in members]
            case _:
                continue
        yield from (other for other in others if other in modules and other != name)


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
    return [
        f"{name}: {', '.join(modules)}" for name, modules in sorted(places.items()) if modules[1:]
    ]


def single_use(imports: Imports) -> list[str]:
    """Return the modules that exactly one other imports."""
    users: dict[str, set[str]] = defaultdict(set)
    for importer, others in imports.items():
        for other in others:
            users[other].add(importer)
    return sorted(f"{name} <- {min(by)}" for name, by in users.items() if len(by) == 1)


def repeated_names(modules: Mapping[str, object]) -> list[str]:
    """Return the file names that several modules have; those of packages do not count."""
    packages = {name.rpartition(".")[0] for name in modules}
    counts = Counter(name.rpartition(".")[2] for name in modules if name not in packages)
    return sorted(name for name, count in counts.items() if count > 1)


def import_lines(tree: ast.Module) -> int:
    """Count the lines of a module's imports."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def face_imports(imports: Imports, face: str) -> list[str]:
    """Return the modules outside a face that its modules import."""
    own = [others for name, others in imports.items() if _is_below(name, face)]
    return sorted({other for others in own for other in others if not _is_below(other, face)})


def _is_below(name: str, face: str) -> bool:
    return f"{name}.".startswith(f"{PACKAGE}.{face}.")


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
