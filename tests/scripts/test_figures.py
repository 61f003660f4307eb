"""Figures of a source tree are counted correctly."""

from __future__ import annotations

from pathlib import Path

from scripts import figures


def tree(root: Path, modules: dict[str, str]) -> Path:
    for name, text in modules.items():
        path = root / "lancelake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def imports(src: Path) -> dict[str, set[str]]:
    trees = figures.parsed(src)
    return {name: set(figures.imported(name, found, trees)) for name, found in trees.items()}


def test_generated_modules_are_left_out(tmp_path: Path) -> None:
    src = tree(tmp_path, {"a.py": "", "proto/b_pb2.py": ""})
    assert set(figures.parsed(src)) == {"lancelake.a"}


def test_packages_that_import_each_other_are_a_cycle_although_their_modules_are_none(
    tmp_path: Path,
) -> None:
    src = tree(
        tmp_path,
        {
            "a/one.py": "from lancelake.b import three",
            "a/two.py": "",
            "b/three.py": "",
            "b/four.py": "import lancelake.a.two",
        },
    )
    (found,) = figures.cycles(imports(src))
    assert found.startswith("lancelake: ")


def test_an_import_for_type_checkers_closes_a_cycle(tmp_path: Path) -> None:
    guarded = "if TYPE_CHECKING:\n    from lancelake.b import B"
    src = tree(tmp_path, {"a.py": guarded, "b.py": "import lancelake.a"})
    assert len(figures.cycles(imports(src))) == 1


def test_a_module_and_its_own_package_are_no_cycle(tmp_path: Path) -> None:
    src = tree(
        tmp_path,
        {
            "a/__init__.py": "from lancelake.a.one import x",
            "a/one.py": "import lancelake.b",
            "b.py": "",
        },
    )
    assert figures.cycles(imports(src)) == []


def test_repeated_class_names_are_listed_except_those_of_the_pylance_face(tmp_path: Path) -> None:
    src = tree(
        tmp_path,
        {
            "a.py": "class Same: ...\nclass _Own: ...",
            "b.py": "class Same: ...\nclass _Own: ...\nclass Face: ...",
            "pylance/c.py": "class Face: ...",
        },
    )
    assert figures.repeated_classes(figures.parsed(src)) == ["Same: lancelake.a, lancelake.b"]


def test_modules_with_one_importer_are_listed(tmp_path: Path) -> None:
    src = tree(
        tmp_path,
        {
            "a.py": "import lancelake.c\nimport lancelake.d",
            "b.py": "import lancelake.d",
            "c.py": "",
            "d.py": "",
        },
    )
    assert figures.single_use(imports(src)) == ["lancelake.c <- lancelake.a"]


def test_a_face_is_charged_for_each_module_outside_of_it_once(tmp_path: Path) -> None:
    src = tree(
        tmp_path,
        {
            "cli/a.py": "from lancelake.core import table\nfrom lancelake.cli import b",
            "cli/b.py": "import lancelake.core.table",
            "clips.py": "import lancelake.core.other",
            "core/table.py": "",
            "core/other.py": "",
        },
    )
    assert figures.face_imports(imports(src), "cli") == ["lancelake.core.table"]
