"""Errors of the command line: messages and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from lancelake.cli import tables
from lancelake.errors import StorageDeniedError, StorageUnavailableError
from lancelake.storage.local import LocalStore
from tests.support.table_surgery import edit_manifest, manifest_path

Run = Callable[..., Result]

FORBIDDEN = ("Traceback", "  File ")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["info", "ftp://somewhere/table"], 2),
        (["info", "{tmp}/nothing"], 3),
        (["info", "{table}", "--at", "99"], 3),
        (["info", "{table}", "--at", "no-such-tag"], 3),
        (["info", "{table}", "--at", "nowhere:1"], 3),
        (["info", "{table}", "--at", "side:99"], 3),
        (["info", "{table}", "--at", "1999-01-01"], 3),
        (["info", "{table}", "--at", "1999-01-01T99:00"], 2),
        (["info", "{table}", "--at", "side:soon"], 2),
        (["show", "{table}", "ref", "nothing"], 3),
        (["show", "{table}", "ref"], 2),
        (["show", "{table}", "manifest", "name"], 2),
        (["head", "{table}", "--columns", "nothing"], 2),
        (["head", "{table}", "--columns", "id,,id"], 2),
        (["head", "{table}", "--filter", "nothing = 1"], 2),
        (["head", "{table}", "--filter", "id +"], 2),
        (["head", "{table}", "-n", "-1"], 2),
        (["count", "{table}", "--filter", "id"], 2),
        (["take", "{table}", "1000"], 2),
        (["take", "{table}", "one"], 2),
        (["take", "{table}", "-5"], 2),
        (["info", "{table}", "--storage-option", "nonsense"], 2),
        (["info", "{table}", "--output", "xml"], 2),
        (["info"], 2),
        (["nonsense"], 2),
        (["check", "{tmp}/nothing"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_code_of(args: list[str], code: int, run: Run, sound: Path, tmp_path: Path) -> None:
    result = run(*(a.format(table=sound, tmp=tmp_path) for a in args))
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr
    assert not any(word in result.output for word in FORBIDDEN)


def test_a_damaged_manifest_exits_with_6(run: Run, table: Path) -> None:
    manifest_path(table).write_bytes(b"garbage")
    result = run("info", table)
    assert result.exit_code == 6
    assert "lancelake check" in result.stderr


def test_check_of_a_damaged_table_exits_with_6(run: Run, table: Path) -> None:
    manifest_path(table).write_bytes(b"garbage")
    result = run("check", table)
    assert result.exit_code == 6
    assert "manifest-damaged" in result.stdout


def test_check_for_programs_exits_with_6_as_well(run: Run, table: Path) -> None:
    manifest_path(table).write_bytes(b"garbage")
    assert run("check", table, "--output", "json").exit_code == 6


def test_an_unknown_reader_flag_exits_with_5(run: Run, table: Path) -> None:
    edit_manifest(table, lambda m: setattr(m, "reader_feature_flags", 1 << 40))
    assert run("head", table).exit_code == 5


@pytest.mark.parametrize("error", [StorageDeniedError, StorageUnavailableError])
def test_a_store_that_refuses_exits_with_7(
    error: type[Exception], run: Run, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LocalStore, directory: str) -> list[str]:
        raise error("no way in")

    monkeypatch.setattr(LocalStore, "list_names", refuse)
    result = run("log", sound)
    assert (result.exit_code, result.stdout) == (7, "")
    assert "no way in" in result.stderr


def _fail(*_: object) -> None:
    raise RuntimeError("the sky is falling")


def test_a_bug_is_reported_in_short(run: Run, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "open_at", _fail)
    result = run("count", sound)
    assert result.exit_code == 70
    assert "RuntimeError: the sky is falling" in result.stderr
    assert "--debug" in result.stderr
    assert not any(word in result.output for word in FORBIDDEN)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_debug_anywhere_shows_where_a_bug_is(
    position: int, run: Run, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "open_at", _fail)
    args: list[str | Path] = ["count", sound]
    args.insert(position, "--debug")
    result = run(*args)
    assert result.exit_code == 70
    assert "Traceback" in result.stderr


def test_a_message_names_the_table_once(run: Run, tmp_path: Path) -> None:
    shown = run("info", tmp_path / "nothing", width=300).stderr
    assert shown.startswith("Error: ")
    assert shown.count(str(tmp_path / "nothing")) == 1


def test_a_closed_pipe_is_quiet(sound: Path) -> None:
    command = [sys.executable, "-m", "lancelake", "show", str(sound), "manifest"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 141


def test_help_loads_neither_arrow_nor_a_command() -> None:
    code = (
        "import sys\n"
        "from lancelake.cli.group import app\n"
        "try:\n    app(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'pyarrow', 'numpy', 'datafusion', 'lance', 'obstore'}\n"
        "heavy.add('lancelake.commit.snapshot')\n"
        "sys.exit(','.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "command",
    ["info", "log", "schema", "tag list", "branch list", "config list", "diff 1 2"],
)
def test_a_look_loads_neither_the_codec_nor_the_sql_engine(sound: Path, command: str) -> None:
    name, *rest = command.split()
    arguments = [name, *[a for a in rest if a.isalpha()], str(sound), *filter(str.isdigit, rest)]
    code = (
        "import sys\n"
        "from lancelake.cli.group import app\n"
        f"try:\n    app({arguments!r})\n"
        "except SystemExit:\n    pass\n"
        "sys.exit(','.join({'datafusion', 'lance', 'pandas'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_characters_that_the_terminal_lacks_do_no_harm(sound: Path) -> None:
    command = [sys.executable, "-m", "lancelake", "info", str(sound)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
