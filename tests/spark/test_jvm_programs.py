"""Programs in Java and Scala, which know Lance tables by the settings of their session."""

from __future__ import annotations

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import lancelake
from scripts.jar import compile_files
from tests.support.front_doors import run_class, run_shell

PROGRAMS = Path(__file__).parents[1] / "support/jvm_programs"
SHOWN = {
    "by path": 5,
    "pushdown": 1,
    "changed": 102,
    "merged": 5,
    "tagged": 100,
    "stream": 100,
}


def ensure_right(done: CompletedProcess[str], root: Path) -> None:
    lines = [line.partition("~")[2] for line in done.stdout.splitlines() if "~" in line]
    shown = {name: int(rows) for name, _, rows in (line.partition("|") for line in lines)}
    assert shown == SHOWN, done.stdout[-3000:] + done.stderr[-5000:]
    assert lancelake.dataset(root / "tables/db/t.lance").count_rows("v = 'm'") == 4
    assert lancelake.dataset(root / "tables/db/s.lance").count_rows() == 100


def test_a_java_class(tmp_path: Path) -> None:
    (tmp_path / "classes").mkdir()
    compile_files([PROGRAMS / "Program.java"], tmp_path / "classes")
    jar = Path(shutil.make_archive(str(tmp_path / "program"), "zip", tmp_path / "classes"))
    done = run_class(tmp_path, jar.rename(tmp_path / "program.jar"), "Program")
    assert done.returncode == 0, done.stderr
    ensure_right(done, tmp_path)


def test_a_scala_script(tmp_path: Path) -> None:
    script = (PROGRAMS / "program.scala").read_text(encoding="utf-8")
    ensure_right(run_shell(tmp_path, script), tmp_path)
