"""What is `lancelake` at a terminal? The command line's entry and its global options."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from lancelake import __version__
from lancelake.cli import options
from lancelake.cli.console import stdout
from lancelake.cli.group import LazyGroup

app = typer.Typer(
    name="lancelake",
    cls=LazyGroup,
    help="Look into Lance tables and change them: rows, versions, files, tags, branches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; characters that the terminal does not have become question marks."""
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
    debug: Annotated[  # noqa: ARG001  # read where errors are told
        bool, typer.Option("--debug", help="Show where in the code an error came from.")
    ] = False,
    confine_to: Annotated[
        list[str] | None,
        typer.Option(
            "--confine-to",
            metavar="ROOT",
            show_default=False,
            help="Reach nothing but the table itself and what is below ROOT, whatever the table "
            "names; repeatable. For a table that you do not trust, give its own URI.",
        ),
    ] = None,
) -> None:
    options.confine_to.set(confine_to or None)
