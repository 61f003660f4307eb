"""The size check reports what is too long, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_sizes

SHORT = "x = 1\n"
LONG_MODULE = SHORT * (check_sizes.MODULE_LINES + 1)
LONG_METHOD = "class A:\n    def f(self):\n" + "        self.x = 1\n" * check_sizes.FUNCTION_LINES


def tree(root: Path, name: str, text: str, *, reasons: str = "") -> Path:
    module = root / "src" / "lancelake" / name
    module.parent.mkdir(parents=True)
    module.write_text(text)
    (root / "sizes.toml").write_text(reasons)
    return root


def test_short_module_passes(tmp_path: Path) -> None:
    assert check_sizes.main(tree(tmp_path, "a.py", SHORT)) == 0


def test_module_at_the_limit_passes(tmp_path: Path) -> None:
    text = SHORT * check_sizes.MODULE_LINES
    assert check_sizes.main(tree(tmp_path, "a.py", text)) == 0


def test_long_module_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_sizes.main(tree(tmp_path, "a.py", LONG_MODULE)) == 1
    assert capsys.readouterr().out.startswith("src/lancelake/a.py: 601 lines")


def test_long_method_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_sizes.main(tree(tmp_path, "a.py", LONG_METHOD)) == 1
    assert capsys.readouterr().out.startswith("src/lancelake/a.py::A.f: 61 lines")


def documented(lines: int) -> str:
    docstring = '    """What it does.\n' + "\n" * lines + '    """\n'
    return f"def f():\n{docstring}    return 1\n"


def test_docstring_does_not_count_towards_its_function(tmp_path: Path) -> None:
    text = documented(check_sizes.FUNCTION_LINES)
    assert check_sizes.main(tree(tmp_path, "a.py", text)) == 0


def test_docstring_counts_towards_its_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = documented(check_sizes.MODULE_LINES)
    assert check_sizes.main(tree(tmp_path, "a.py", text)) == 1
    assert capsys.readouterr().out.startswith("src/lancelake/a.py: 604 lines")


def test_other_texts_count_towards_their_function(tmp_path: Path) -> None:
    text = 'def f():\n    return """\n' + SHORT * check_sizes.FUNCTION_LINES + '"""\n'
    assert check_sizes.main(tree(tmp_path, "a.py", text)) == 1


def test_long_module_with_a_reason_passes(tmp_path: Path) -> None:
    reasons = '"src/lancelake/a.py" = "a table of facts"'
    assert check_sizes.main(tree(tmp_path, "a.py", LONG_MODULE, reasons=reasons)) == 0


def test_empty_reason_does_not_count(tmp_path: Path) -> None:
    reasons = '"src/lancelake/a.py" = ""'
    assert check_sizes.main(tree(tmp_path, "a.py", LONG_MODULE, reasons=reasons)) == 1


def test_reason_for_a_short_module_is_refused(tmp_path: Path) -> None:
    reasons = '"src/lancelake/a.py" = "was long"'
    assert check_sizes.main(tree(tmp_path, "a.py", SHORT, reasons=reasons)) == 1


def test_generated_code_may_be_long(tmp_path: Path) -> None:
    assert check_sizes.main(tree(tmp_path, "proto/a_pb2.py", LONG_MODULE)) == 0
