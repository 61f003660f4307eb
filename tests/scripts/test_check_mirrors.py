"""The mirror check reports modules without tests, and needless exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_mirrors


def tree(root: Path, *, modules: tuple[str, ...], tests: tuple[str, ...], listed: str = "") -> Path:
    places = [root / "src" / "lancelake" / name for name in modules]
    places += [root / "tests" / name for name in tests]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests" / "mirrors.toml").write_text(listed)
    return root


def test_module_with_tests_at_the_same_place_passes(tmp_path: Path) -> None:
    root = tree(tmp_path, modules=("a/b.py",), tests=("unit/a/test_b.py",))
    assert check_mirrors.main(root) == 0


def test_module_without_tests_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, modules=("a/b.py",), tests=("unit/test_b.py",))
    assert check_mirrors.main(root) == 1
    assert capsys.readouterr().out == "a/b.py: no tests/unit/a/test_b.py\n"


@pytest.mark.parametrize("entry", ["a/b.py", "a"])
def test_module_covered_by_a_named_suite_passes(tmp_path: Path, entry: str) -> None:
    listed = f'"{entry}" = "cli model/test_c.py"'
    tests = ("cli/test_d.py", "model/test_c.py")
    assert check_mirrors.main(tree(tmp_path, modules=("a/b.py",), tests=tests, listed=listed)) == 0


def test_suite_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tree(tmp_path, modules=("a/b.py",), tests=(), listed='"a/b.py" = "cli"')
    assert check_mirrors.main(root) == 1
    assert capsys.readouterr().out == "a/b.py: cli does not exist\n"


def test_exception_without_a_suite_is_refused(tmp_path: Path) -> None:
    root = tree(tmp_path, modules=("a/b.py",), tests=(), listed='"a/b.py" = ""')
    assert check_mirrors.main(root) == 1


def test_exception_for_a_module_with_tests_of_its_own_is_refused(tmp_path: Path) -> None:
    root = tree(
        tmp_path, modules=("a/b.py",), tests=("unit/a/test_b.py",), listed='"a/b.py" = "unit/a"'
    )
    assert check_mirrors.main(root) == 1


def test_exception_for_a_name_that_only_begins_alike_does_not_count(tmp_path: Path) -> None:
    root = tree(
        tmp_path, modules=("ab/c.py", "a/c.py"), tests=("unit/x.py",), listed='"a" = "unit"'
    )
    assert check_mirrors.main(root) == 1


def test_generated_modules_and_packages_need_no_tests(tmp_path: Path) -> None:
    root = tree(tmp_path, modules=("proto/a_pb2.py", "a/__init__.py", "__main__.py"), tests=())
    assert check_mirrors.main(root) == 0
