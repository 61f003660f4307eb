"""Lazy command group, global options and error reporting."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import sys
import traceback
from typing import Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from lancelake.cli.console import stderr
from lancelake.cli.words import printable
from lancelake.errors import InternalError, LanceTableError, TableNotFoundError
from lancelake.suggest import suggestion

# A command's module is loaded when the command runs: listing commands loads nothing.
COMMANDS = {
    "ls": "List the tables below a folder, with rows, size and version.",
    "info": "Show a summary: size, versions, columns, indices.",
    "schema": "Show the columns, with ids, types and metadata.",
    "log": "Show the versions and their operations, newest first.",
    "show": "Show a stored manifest, transaction or ref.",
    "profile": "Show nulls, distinct values, bounds and distribution of columns.",
    "stats": "Show sizes of fragments, deleted rows and growth by version.",
    "files": "List the fragments and their files.",
    "diff": "Compare two versions.",
    "changes": "Show row-level changes between two versions.",
    "head": "Show the first rows.",
    "count": "Count the rows.",
    "take": "Show rows by position.",
    "search": "Search by text, by vector, or by both.",
    "sql": "Run a SQL query.",
    "ui": "Explore tables in the browser.",
    "check": "Check a table, its tags and branches for damage.",
    "repair": "Repair damage.",
    "write": "Write files to a table.",
    "convert": "Create a table from a folder of Parquet files or from a Delta table.",
    "export": "Write the rows of a table to a Parquet, CSV, JSON lines or Arrow file.",
    "delete": "Delete the rows that match a filter.",
    "update": "Set columns of the rows that match a filter.",
    "merge": "Merge files into a table by key.",
    "compact": "Rewrite small fragments into larger ones.",
    "index": "List, create, refresh, measure and drop indices.",
    "optimize": "Compact, refresh indices and clean up, if worthwhile.",
    "cleanup": "Remove old versions, and files that are no longer referenced.",
    "wal": "Set up, show, merge and clean up the MemWAL, a log of upserts.",
    "columns": "Add, drop, rename and alter columns.",
    "config": "Show and change config and metadata.",
    "tag": "List, create, move and delete tags.",
    "branch": "List, create and delete branches.",
    "clone": "Clone a version of a table.",
    "restore": "Restore an old version as the newest.",
    "matrix": "Show which operations conflict if they run at the same time.",
}

EXAMPLES = {
    "ls": ".",
    "info": "photos.lance",
    "schema": "photos.lance --at 1",
    "log": "photos.lance -n 5",
    "show": "photos.lance transaction",
    "profile": "photos.lance -c id",
    "stats": "photos.lance --versions 10",
    "files": "photos.lance",
    "diff": "photos.lance 1 2",
    "changes": "photos.lance --from 1 -o jsonl",
    "head": "photos.lance -n 3 -c id",
    "count": "photos.lance --filter 'id > 3'",
    "take": "photos.lance 0,2",
    "search": "photos.lance 'harbour' -k 3",
    "sql": "photos.lance 'SELECT count(*) FROM dataset'",
    "ui": "photos.lance",
    "check": "photos.lance --all-versions",
    "repair": "photos.lance",
    "write": "day-1.csv days.lance --mode append",
    "convert": "sales/ sales.lance",
    "export": "photos.lance photos.csv -c id",
    "delete": "photos.lance --where 'id = 3'",
    "update": "photos.lance --set id=4 --where 'id = 3'",
    "merge": "days.lance day-1.csv --on station",
    "compact": "photos.lance",
    "index": "create photos.lance id --kind BTREE",
    "optimize": "photos.lance",
    "cleanup": "photos.lance --dry-run",
    "columns": "drop photos.lance caption",
    "config": "list photos.lance",
    "tag": "create photos.lance release-1",
    "branch": "create photos.lance experiment",
    "clone": "photos.lance copy.lance",
    "restore": "photos.lance --at 1",
    "wal": "init photos.lance --key id",
    "matrix": "",
    "index list": "photos.lance",
    "index stats": "photos.lance caption_idx",
    "index create": "photos.lance id --kind BTREE",
    "index refresh": "photos.lance",
    "index recall": "photos.lance embedding -k 5 --nprobes 1,2",
    "index drop": "photos.lance caption_idx",
    "wal init": "photos.lance --key id",
    "wal status": "users.lance",
    "wal merge": "users.lance --flush",
    "wal gc": "users.lance --dry-run",
    "wal tail": "users.lance",
    "columns add": "days.lance 'fahrenheit=temperature * 1.8 + 32'",
    "columns drop": "photos.lance caption",
    "columns rename": "photos.lance caption title",
    "columns alter": "days.lance temperature --type float32",
    "columns reorder": "photos.lance caption id",
    "config list": "photos.lance",
    "config get": "photos.lance owner",
    "config set": "photos.lance owner=ada retention=30d",
    "config unset": "photos.lance owner",
    "tag list": "photos.lance",
    "tag create": "photos.lance release-1 --at 1",
    "tag move": "photos.lance launch --at 2",
    "tag delete": "photos.lance launch",
    "branch list": "photos.lance",
    "branch create": "photos.lance experiment",
    "branch delete": "photos.lance trial",
}

_BROKEN_PIPE = 141
_DEBUG = "--debug"
_CONFINE = "--confine-to"
_END_OF_OPTIONS = "--"


class LazyGroup(TyperGroup):
    """The commands of `lancelake`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer's type is private
        """Names of the commands, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer's type is private
        """Return the parts of a command that a help page needs."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's type is private
        """Load the command to run."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            advice = suggestion(args[0], COMMANDS, "commands") or "`lancelake -h` lists them."
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and load_command(known.name or ""), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer's type is private
        """Accept global options at any position."""
        return super().parse_args(ctx, _shared_first(args))

    def invoke(self, ctx: Any) -> Any:  # typer's type is private
        """Run a command; an error becomes a message and an exit code."""
        is_debug = bool(ctx.params.get("debug"))
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except BrokenPipeError as error:
            _close_stdout()
            raise typer.Exit(_BROKEN_PIPE) from error
        except LanceTableError as error:
            _print_error(error, is_debug=is_debug)
            raise typer.Exit(error.exit_code) from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # panics of the codec are not exceptions
            _print_internal_error(error, is_debug=is_debug)
            raise typer.Exit(InternalError.exit_code) from error
        return result


def load_command(name: str) -> Any:  # typer's type is private
    """Load the module of a command."""
    module = importlib.import_module(f"lancelake.cli.commands.{name}")
    command = typer.main.get_command(module.app)
    command.name = name
    command.epilog = _example(name)
    for below, subcommand in getattr(command, "commands", {}).items():
        subcommand.epilog = _example(f"{name} {below}")
    return command


def _example(command: str) -> str:
    return f"Example: lancelake {command} {EXAMPLES[command]}".rstrip()


def _shared_first(args: list[str]) -> list[str]:
    """Move `--debug` and `--confine-to ROOT` before the command."""
    shared: list[str] = []
    others: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == _END_OF_OPTIONS:
            others += [arg, *rest]
        elif arg == _DEBUG or arg.startswith(f"{_CONFINE}="):
            shared.append(arg)
        elif arg == _CONFINE:
            shared += [arg, *itertools.islice(rest, 1)]
        else:
            others.append(arg)
    return [*shared, *others]


def _print_error(error: LanceTableError, *, is_debug: bool) -> None:
    console = stderr()
    if is_debug:
        console.print(Text(traceback.format_exc(), style="dim"))
    console.print(Text.assemble(("Error: ", "bold red"), printable(error.problem)))
    if place := error.place():
        console.print(Text(f"  in {printable(place)}", style="dim"))
    advice = error.next_step or _place_advice(error)
    if advice:
        console.print(Text(f"  {printable(advice)}"))


def _place_advice(error: LanceTableError) -> str | None:
    """Return what is at the place of a table that does not exist."""
    if not isinstance(error, TableNotFoundError) or error.table is None:
        return None
    # Only an error needs these modules.
    from lancelake.cli.foreign import advice_for  # noqa: PLC0415
    from lancelake.cli.table_location import named_location  # noqa: PLC0415

    place = named_location(error.table)
    return None if place is None else advice_for(place)


def _print_internal_error(error: BaseException, *, is_debug: bool) -> None:
    console = stderr()
    if is_debug:
        console.print(Text(traceback.format_exc(), style="dim"))
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    console.print(Text.assemble(("Internal error: ", "bold red"), printable(what)))
    advice = (
        InternalError.action if is_debug else f"Run it again with {_DEBUG} to see the traceback."
    )
    console.print(Text(f"  {advice}"))


def _close_stdout() -> None:
    """Prevent the interpreter from flushing into a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
