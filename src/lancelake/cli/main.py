"""Entry point and global options of the command line."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from lancelake import __version__
from lancelake.cli import table_location
from lancelake.cli.console import stdout
from lancelake.cli.group import LazyGroup

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
    table_location.confine_to.set(confine_to or None)
