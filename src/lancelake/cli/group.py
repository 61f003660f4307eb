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
from lancelake.errors import InternalError, LanceTableError

# A command's module is loaded when the command runs: listing commands loads nothing.
COMMANDS = {
    "info": "Show a summary: size, versions, columns, indices.",
    "schema": "Show the columns, with ids, types and metadata.",
    "log": "Show the versions and their operations, newest first.",
    "show": "Show a stored manifest, transaction or ref.",
    "files": "List the fragments and their files.",
    "diff": "Compare two versions.",
    "changes": "Show row-level changes between two versions.",
    "head": "Show the first rows.",
    "count": "Count the rows.",
    "take": "Show rows by position.",
    "search": "Search by text, by vector, or by both.",
    "sql": "Run a SQL query.",
    "check": "Check a table, its tags and branches for damage.",
    "repair": "Repair damage.",
    "write": "Write files to a table.",
    "delete": "Delete the rows that match a filter.",
    "update": "Set columns of the rows that match a filter.",
    "merge": "Merge files into a table by key.",
    "compact": "Rewrite small fragments into larger ones.",
    "index": "List, create, refresh, measure and drop indices.",
    "optimize": "Compact, refresh indices and clean up, if worthwhile.",
    "cleanup": "Remove old versions, and files that are no longer referenced.",
    "columns": "Add, drop, rename and alter columns.",
    "config": "Show and change config and metadata.",
    "tag": "List, create, move and delete tags.",
    "branch": "List, create and delete branches.",
    "clone": "Clone a version of a table.",
    "restore": "Restore an old version as the newest.",
    "matrix": "Show which operations conflict if they run at the same time.",
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
    return command


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
    console.print(Text.assemble(("error: ", "bold red"), printable(error.problem)))
    if place := error.place():
        console.print(Text(f"  in {printable(place)}", style="dim"))
    if error.next_step:
        console.print(Text(f"  {printable(error.next_step)}"))


def _print_internal_error(error: BaseException, *, is_debug: bool) -> None:
    console = stderr()
    if is_debug:
        console.print(Text(traceback.format_exc(), style="dim"))
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    console.print(Text.assemble(("internal error: ", "bold red"), printable(what)))
    advice = (
        InternalError.action if is_debug else f"Run it again with {_DEBUG} to see the traceback."
    )
    console.print(Text(f"  {advice}"))


def _close_stdout() -> None:
    """Prevent the interpreter from flushing into a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
