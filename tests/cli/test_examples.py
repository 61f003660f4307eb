"""The example of each command runs."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake.pylance as lance
from lancelake.cli import commands
from lancelake.cli.group import command_names, load_command
from tests.cli.conftest import Run
from tests.support.memwal_tables import rows as memwal_rows

# It serves until it is stopped; its own tests start it.
SERVER = "ui"
VECTOR = pa.list_(pa.float32(), 4)
CAPTIONS = ["boats in the harbour", "a mill", "the lighthouse", "harbour at night", "a street"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables and files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    schema = pa.schema({"id": pa.int64(), "caption": pa.string(), "embedding": VECTOR})
    schema = schema.set(0, schema.field(0).with_nullable(False))
    vectors = [[float(row), 1.0, 0.0, 0.5] for row in range(5)]
    rows = pa.table({"id": range(5), "caption": CAPTIONS, "embedding": vectors}, schema)
    photos = lance.write_dataset(rows, folder / "photos.lance", enable_stable_row_ids=True)
    photos.insert(rows.slice(0, 2))
    photos.create_scalar_index("caption", "INVERTED")
    photos.create_index("embedding", "IVF_FLAT", num_partitions=2, metric="l2")
    photos.update_config({"owner": "grace"})
    photos.tags.create("launch", 1)
    photos.create_branch("trial")
    users = lance.write_dataset(memwal_rows((1, "Ada")), folder / "users.lance")
    users.wal.initialize(buckets=1)
    with users.wal.writer() as writer:
        writer.put(memwal_rows((2, "Grace")))
    days = pa.table({"station": ["harbour"], "temperature": [11.5]})
    lance.write_dataset(days, folder / "days.lance")
    (folder / "day-1.csv").write_text("station,temperature\nharbour,11.5\nmill,9.0\n")
    (folder / "sales" / "day=1").mkdir(parents=True)
    pq.write_table(rows, folder / "sales" / "day=1" / "part.parquet")
    return folder


def _examples() -> dict[str, str]:
    """Return the arguments of the example of each command."""
    top = {name: load_command(name) for name in command_names()}
    below = {
        f"{name} {each}": subcommand
        for name, command in top.items()
        for each, subcommand in getattr(command, "commands", {}).items()
    }
    return {
        path: command.epilog.removeprefix(f"Example: lancelake {path}")
        for path, command in (top | below).items()
    }


EXAMPLES = _examples()


@pytest.mark.parametrize("command", sorted(EXAMPLES.keys() - {SERVER}))
def test_example_of(
    command: str, made: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "here"))
    result = run(*command.split(), *shlex.split(EXAMPLES[command]))
    assert result.exit_code == 0, result.output


def test_help_shows_the_example(output: Callable[..., str]) -> None:
    assert "Example: lancelake count photos.lance" in output("count", "--help")
    assert "Example: lancelake tag move photos.lance" in output("tag", "move", "--help")


_HELLO = '''"""Greet the rows."""

from lancelake.cli.console import stdout
from lancelake.cli.options import CommandModule, Version

commands = CommandModule()


@commands.add(example="photos.lance")
def hello(version: Version) -> None:
    """Greet the rows of a table."""
    stdout().print(f"Hello, {version.open().count_rows()} rows")
'''


def test_a_module_is_all_that_a_command_needs(
    made: Path, output: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hello.py").write_text(_HELLO, encoding="utf-8")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    assert output("hello", made / "photos.lance") == "Hello, 7 rows\n"
    assert "hello Greet the rows." in " ".join(output("--help").split())
    assert "Example: lancelake hello photos.lance" in output("hello", "--help")
