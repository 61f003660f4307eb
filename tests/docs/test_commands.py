"""Commands on the pages run; other programs are named as they are.

`docs/cli.md` has a test of its own, which compares its output too.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lancelake
from lancelake.cli.group import app
from tests.cli.test_convert import Delta
from tests.docs.pages import run_page
from tests.support.s3_server import S3Server

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^( *)```(?:sh|console)\n(?P<code>.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r" +#.*$", re.MULTILINE)
SERVER = "ui"  # runs until it is stopped: tests/cli/test_ui.py
OTHERS = {"make", "pip", "spark-submit"}


def blocks() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the pages with the lines of each block of commands."""
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        if path.name == "cli.md":
            continue
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            code = COMMENT.sub("", block["code"]).replace("\\\n", " ")
            lines = (line.strip().removeprefix("$ ") for line in code.splitlines())
            yield str(path.relative_to(ROOT)).removeprefix("docs/"), tuple(filter(None, lines))


LINES = [(page, line) for page, block in blocks() for line in block]
OURS = {
    f"{page}-{number}": (page, lines)
    for number, (page, block) in enumerate(blocks())
    if (
        lines := [
            line
            for line in block
            if line.startswith("lancelake ") and SERVER not in line.split()[:2]
        ]
    )
}


def _photos() -> None:
    for number in range(3):
        rows = pa.table({"id": [number], "caption": [f"boat {number}"]})
        lancelake.write_dataset(rows, "photos.lance", mode="append")


def _readings() -> None:
    days = pa.table({"sensor": [1, 2], "value": [20.5, 18.0], "day": ["mon", "tue"]})
    pq.write_to_dataset(days, "readings", partition_cols=["day"])
    options = pc.WriteOptions(delimiter=";")
    pc.write_csv(days, "export.csv", options)


def _sales() -> None:
    rows = pa.table({"id": [1, 2], "price": [9.5, 3.0], "day": [1, 2]})
    pq.write_to_dataset(rows, "sales", partition_cols=["day"])
    delta = Delta(Path("delta-table"))
    delta.commit(delta.add("a.parquet", [1, 2], "2026-01-01"))


def _cities() -> None:
    run_page(DOCS / "upserts.md")
    late = pa.table({"id": [3, 9], "city": ["Turku", "Oulu"], "visits": [10, 1]})
    pq.write_table(late, "late.parquet")
    pc.write_csv(late, "late.csv")


# What the commands of a page find in their folder.
GIVEN: dict[str, Callable[[], object]] = {
    "README.md": partial(run_page, ROOT / "README.md"),
    "compaction.md": partial(run_page, DOCS / "compaction.md"),
    "ingest.md": _readings,
    "migrate.md": _sales,
    "object-stores.md": lambda: None,
    "optimize.md": _photos,
    "repair.md": _photos,
    "upserts.md": _cities,
}


@pytest.mark.parametrize("name", OURS)
def test_commands_of_a_page_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str, s3: S3Server
) -> None:
    page, lines = OURS[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    GIVEN[page]()
    for line in lines:
        actual = line.replace("s3://bucket", bucket).replace("http://localhost:9000", s3.endpoint)
        result = CliRunner().invoke(app, shlex.split(actual)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"


def test_every_line_is_a_command() -> None:
    programs = {line.split()[0] for _, line in LINES}
    assert programs == {"lancelake", *OTHERS}


def test_extras_and_targets_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for _, line in LINES:
        for extra in re.findall(r"lancelake\[(\w+)\]", line):
            assert extra in project["optional-dependencies"]
        if line.startswith("make "):
            assert f"\n{line.split()[1]}:" in makefile
