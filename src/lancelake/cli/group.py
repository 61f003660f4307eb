"""How are commands found, and what becomes of their errors?"""

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

# A command's module is loaded when the command runs: listing them loads nothing.
COMMANDS = {
    "info": "Show one table at a glance.",
    "schema": "Show the columns, with ids, types and metadata.",
    "log": "Show the versions, newest first, and what each one did.",
    "show": "Show a manifest, a transaction or a ref as it is stored.",
    "files": "Show the fragments and their files.",
    "diff": "Show what differs between two versions.",
    "changes": "Show the rows that changed between two versions.",
    "head": "Show the first rows.",
    "count": "Count the rows.",
    "take": "Show rows by their number.",
    "sql": "Show the answer to a query in SQL.",
    "check": "Look for damage, and for what deserves attention.",
    "repair": "Set right what is damaged.",
    "write": "Write files into a table.",
    "delete": "Delete the rows that match.",
    "update": "Set columns of the rows that match.",
    "merge": "Merge files into a table by key.",
    "compact": "Write rows into fewer and fuller files.",
    "index": "Show, build, refresh and drop indices.",
    "optimize": "Compact, refresh indices and clean up, where it is worth it.",
    "cleanup": "Remove old versions, and files that no version needs.",
    "columns": "Add, drop, rename and alter columns.",
    "config": "Show and change settings: config and metadata.",
    "tag": "Show and change tags: names of versions.",
    "branch": "Show and change branches: lines of versions of their own.",
    "clone": "Make a table of a version of another.",
    "restore": "Make an old version the newest again.",
    "matrix": "Show which changes can be made at the same time.",
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
        """Return what a help page needs to know of a command."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's type is private
        """Load the command that is to run."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and load_command(known.name or ""), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer's type is private
        """Take the options that all commands share wherever they stand."""
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
            _tell(error, is_debug=is_debug)
            raise typer.Exit(error.exit_code) from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # the codec's panics are no exceptions
            _apologise(error, is_debug=is_debug)
            raise typer.Exit(InternalError.exit_code) from error
        return result


def load_command(name: str) -> Any:  # typer's type is private
    """Load the module of a command."""
    module = importlib.import_module(f"lancelake.cli.commands.{name}")
    command = typer.main.get_command(module.app)
    command.name = name
    return command


def _shared_first(args: list[str]) -> list[str]:
    """Move `--debug` and `--confine-to ROOT` in front of the command."""
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


def _tell(error: LanceTableError, *, is_debug: bool) -> None:
    console = stderr()
    if is_debug:
        console.print(Text(traceback.format_exc(), style="dim"))
    where = f"table {error.table}" if error.table else ""
    if where and error.version is not None:
        where += f", version {error.version}"
    console.print(Text.assemble(("error: ", "bold red"), printable(error.problem)))
    if where:
        console.print(Text(f"  in {printable(where)}", style="dim"))
    console.print(Text(f"  {printable(error.next_step)}"))


def _apologise(error: BaseException, *, is_debug: bool) -> None:
    console = stderr()
    if is_debug:
        console.print(Text(traceback.format_exc(), style="dim"))
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    console.print(
        Text.assemble(("sorry, something went wrong here: ", "bold red"), printable(what))
    )
    advice = InternalError.action if is_debug else f"Run it again with {_DEBUG} to see where."
    console.print(Text(f"  {advice}"))


def _close_stdout() -> None:
    """Keep the interpreter from flushing into a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
