"""The page about the command line shows the actual output of the commands.

`LANCELAKE_UPDATE_DOCS=1` rewrites the page instead.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import lancelake.pylance as lance
from lancelake.cli.group import command_names
from tests.support.memwal_tables import rows

REPO = Path(__file__).parents[2]
PAGE = REPO / "docs" / "cli.md"
HELP = re.compile(r'^```text title="lancelake (?P<args>[^"]*)"\n.*?^```$', re.DOTALL | re.MULTILINE)
RUN = re.compile(r"^```console\n\$ lancelake (?P<args>[^\n]*)\n.*?^```$", re.DOTALL | re.MULTILINE)
WIDTH = 100
# What differs from run to run, or from machine to machine.
VOLATILE = (
    (r"/\S*\.lance", "<uri>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00:00|\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>"),
    (r"[\d,.]+ (ms|s)\b(?! ago)", "<duration>"),
    (r'"manifest_size": \d+', "<size>"),
    (r"just now|\d+ (s|min|h|seconds?|minutes?|hours?) ago", "<age>"),
    (r"[01]{24}[0-9a-f]{10,26}…?", "<file>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    (r"-\d{10,}\.", "-<id>."),
    (r"id: \d{10,}", "id: <id>"),
    (r"(?<![\w.])[\d.]+ [KMG]?i?B\b|file_size_bytes: \d+", "<size>"),
    (r" +", " "),
)
FILES = {
    "day-1.csv": "station,temperature\nharbour,11.5\nmill,9.0\n",
    "day-2.jsonl": '{"station": "harbour", "temperature": 12.0}\n',
    "day-3.jsonl": '{"station": "mill", "temperature": 8.5}\n',
    "day-4.csv": "station,temperature\nlighthouse,7.5\nmill,10.0\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the table of the tour, and files to write."""
    path = tmp_path_factory.mktemp("docs")
    _tour().write(str(path / "photos.lance"))
    for name, text in FILES.items():
        (path / name).write_text(text, encoding="utf-8")
    _write_users(path / "users.lance")
    return path


def _write_users(path: Path) -> None:
    """Write a table whose MemWAL has rows that are flushed, and rows that are only in the log."""
    users = lance.write_dataset(rows((1, "Ada"), (2, "Grace")), path)
    users.wal.initialize(buckets=1)
    writer = users.wal.writer()
    writer.put(rows((2, "Grace H."), (3, "Edsger")))
    writer.flush()
    writer.put(rows((4, "Barbara")))
    writer.delete([1])
    writer.close(flush=False)


def test_the_page_is_current(
    folder: Path, output: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)

    def shown(args: str) -> str:
        return output(*shlex.split(args), width=WIDTH).rstrip("\n")

    page = PAGE.read_text(encoding="utf-8")
    current = HELP.sub(
        lambda m: f'```text title="lancelake {m["args"]}"\n{shown(m["args"])}\n```', page
    )
    current = RUN.sub(
        lambda m: f"```console\n$ lancelake {m['args']}\n{shown(m['args'])}\n```", current
    )
    if os.environ.get("LANCELAKE_UPDATE_DOCS"):
        PAGE.write_text(current.replace(f"{folder}/", "/data/"), encoding="utf-8")
        return
    assert _masked(page) == _masked(current)


def test_the_page_has_a_section_with_help_for_every_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = [f"## {name}" for name in command_names()]
    assert [line for line in page.splitlines() if line in sections] == sections
    assert [m["args"] for m in HELP.finditer(page)][1:] == [
        f"{name} --help" for name in command_names()
    ]


def _masked(page: str) -> str:
    for pattern, name in VOLATILE:
        page = re.sub(pattern, name, page)
    return page


def _tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("photos", REPO / "examples" / "photos.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
