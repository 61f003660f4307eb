"""Group of all commands, each loaded when it runs."""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from lancelake.cli import commands
from lancelake.cli.console import stderr, stdout
from lancelake.cli.phrases import plural, printable
from lancelake.errors import InternalError, LanceTableError, TableNotFoundError, suggestion
from lancelake.version import __version__

# The order on the help page, which other commands follow.
_ORDER = (
    *("ls", "info", "schema", "log", "show", "profile", "stats", "files", "diff", "changes"),
    *("head", "count", "take", "search", "sql", "ui", "check", "repair", "write", "convert"),
    *("export", "delete", "update", "merge", "compact", "index", "optimize", "cleanup", "wal"),
    *("columns", "config", "tag", "branch", "clone", "restore", "matrix"),
    *("spark-conf", "pipelines"),
)

_BROKEN_PIPE = 141
_INTERRUPTED = 130
_DEBUG = "--debug"
_CONFINE = "--confine-to"
_END_OF_OPTIONS = "--"


class LazyGroup(TyperGroup):
    """The commands of `lancelake`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer's type is private
        """Names of the commands, in the order of the help page."""
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer's type is private
        """Return the parts of a command that a help page needs."""
        if cmd_name not in command_names():
            return None
        return TyperCommand(cmd_name, help=summary(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's type is private
        """Load the command to run."""
        names = command_names()
        if args and args[0] not in names and not args[0].startswith("-"):
            advice = suggestion(args[0], names, "commands") or "`lancelake -h` lists them."
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(command.name or ""), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer's type is private
        """Accept global options at any position."""
        return super().parse_args(ctx, _move_shared_first(args))

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
        except KeyboardInterrupt as error:
            _print_stopped()
            raise typer.Exit(_INTERRUPTED) from error
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # panics of the codec are not exceptions
            _print_internal_error(error, is_debug=is_debug)
            raise typer.Exit(InternalError.exit_code) from error
        return result


def command_names() -> list[str]:
    """Return the names of the commands, which are those of their modules."""
    names = {file.stem.replace("_", "-") for file in _files("[a-z]*")}
    return sorted(names, key=lambda name: (_place(name), name))


def summary(name: str) -> str:
    """Return the first line of the module of a command, which is not loaded."""
    with _files(_module(name))[0].open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def load_command(name: str) -> Any:  # typer's type is private
    """Load the module of a command, which runs when its command does."""
    module = importlib.import_module(f"{commands.__name__}.{_module(name)}")
    command = typer.main.get_command(module.commands.app)
    command.name = name
    _complete_example(command, name)
    for below, subcommand in getattr(command, "commands", {}).items():
        _complete_example(subcommand, f"{name} {below}")
    return command


def _complete_example(command: Any, path: str) -> None:  # typer's type is private
    command.epilog = f"Example: lancelake {path} {command.epilog}".rstrip()


def _module(command: str) -> str:
    return command.replace("-", "_")


def _files(name: str) -> list[Path]:
    return [file for folder in commands.__path__ for file in Path(folder).glob(f"{name}.py")]


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _move_shared_first(args: list[str]) -> list[str]:
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
    advice = error.next_step or _advice(error)
    if advice:
        console.print(Text(f"  {printable(advice)}"))


def _advice(error: LanceTableError) -> str | None:
    if not isinstance(error, TableNotFoundError) or error.table is None:
        return None
    # Only an error needs this module.
    from lancelake.cli.tables import advice_for  # noqa: PLC0415

    return advice_for(error.table)


def _print_stopped() -> None:
    """Say what an interrupted command has changed."""
    # Only an interrupt needs this module.
    from lancelake.core.values.writes import tally  # noqa: PLC0415

    if tally.in_doubt:
        what = "a version was being committed: `lancelake log` shows whether it was"
    elif tally.published:
        what = f"{plural(tally.published, 'version')} had been committed"
    else:
        what = "nothing was committed"
    stderr().print(Text.assemble(("Stopped: ", "bold red"), what))


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


app = typer.Typer(
    name="lancelake",
    cls=LazyGroup,
    help="Inspect and change Lance tables: rows, versions, files, tags, branches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; characters that the terminal cannot display become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="lancelake")


def _version(value: bool) -> None:
    if value:
        stdout().print(f"lancelake {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001  # read where errors are printed
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    confine_to: Annotated[
        list[str] | None,
        typer.Option(
            "--confine-to",
            metavar="ROOT",
            show_default=False,
            help="Confine access to the table itself and to paths below ROOT, whatever paths "
            "the table contains; repeatable. For an untrusted table, use its own URI.",
        ),
    ] = None,
) -> None:
    # Slow to import.
    from lancelake.cli import tables  # noqa: PLC0415
    from lancelake.core.values.writes import declare_engine  # noqa: PLC0415

    declare_engine("command line")
    tables.confine_to.set(confine_to or None)
