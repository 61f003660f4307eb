"""Run a SQL query."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.options import CommandModule, MaxRows, RowOutput, Version, argument, flag, option
from lancelake.cli.report import Listing, cut
from lancelake.cli.rows import print_stream, tree, type_text
from lancelake.core.values.reads import SqlRequest
from lancelake.errors import LanceTableError

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Snapshot

_HELP = """SELECT ... ;     run a query, which may span lines
.tables          list the tables
.schema [NAME]   show the columns of a table
.help            show this text
.quit            leave; also Ctrl-D"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Reads statements from the terminal and answers them."""

    tables: Mapping[str, Snapshot]
    answer: Callable[[str], None]

    def run(self) -> None:
        """Read statements until the end of input; an error does not end the shell."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  # gives input() a history where it is installed
        console = stdout()
        console.print(Text("Enter SQL that ends with a semicolon, or .help", style="dim"))
        pending = ""
        while True:
            try:
                line = input("   ...> " if pending else "lance> ")
            except EOFError:
                console.print()
                return
            except KeyboardInterrupt:
                console.print()
                pending = ""
                continue
            if not pending and line.strip() in (".quit", ".exit"):
                return
            pending = self._step(f"{pending}{line}\n")

    def _step(self, text: str) -> str:
        """Run a complete statement or command; return the text that is not complete yet."""
        stripped = text.strip()
        is_command = stripped.startswith(".")
        if not is_command and not stripped.endswith(";"):
            return text if stripped else ""
        try:
            self._command(stripped) if is_command else self.answer(stripped.rstrip("; \n"))
        except LanceTableError as error:
            stdout().print(Text(f"Error: {phrases.printable(str(error))}", style="red"))
        return ""

    def _command(self, text: str) -> None:
        console = stdout()
        command, _, name = text.partition(" ")
        match command:
            case ".tables":
                for table, snapshot in self.tables.items():
                    uri = phrases.printable(snapshot.location.uri)
                    console.print(Text.assemble((table, "bold"), f"  {uri}"))
            case ".schema":
                self._schema(name.strip() or next(iter(self.tables)))
            case _:
                console.print(_HELP)

    def _schema(self, name: str) -> None:
        snapshot = self.tables.get(name)
        if snapshot is None:
            stdout().print(
                Text(f"Error: table {phrases.printable(name)!r} is unknown", style="red")
            )
            return
        listing = Listing([cut("column"), cut("type")])
        for field, label in tree(snapshot.manifest.schema):
            listing.add(Text(label), Text(type_text(field), "green"))
        stdout().print(listing)


commands = CommandModule()

_STDIN = "-"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

QueryText = Annotated[
    str | None,
    argument(
        "QUERY",
        "SELECT ... FROM dataset, in quotes; - for standard input. By default, an "
        "interactive shell on a terminal, else standard input.",
    ),
]
Tables = Annotated[
    list[str] | None,
    option(
        "--table", "NAME=URI", "Another table and its name in the query; repeatable.", short="-t"
    ),
]


@commands.add(example="photos.lance 'SELECT count(*) FROM dataset'")
def sql(
    version: Version,
    query: QueryText = None,
    tables: Tables = None,
    rows: MaxRows = None,
    explain: Annotated[bool, flag("--explain", "Show the query plan instead.")] = False,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Run a SQL query, in which the table is named dataset."""
    table = version.open()
    others = dict(_other(text, version) for text in tables or ())
    request = SqlRequest(text="", others=others)

    def answer(text: str) -> None:
        question = table.query(replace(request, text=text))
        if explain:
            stdout().print(question.explain(), markup=False, highlight=False, soft_wrap=True)
            return
        with question.run() as reader:
            print_stream(reader, reader.schema, table.snapshot, output, rows)

    if query is None and sys.stdin.isatty():
        Shell(tables={"dataset": table.snapshot, **others}, answer=answer).run()
    else:
        answer(sys.stdin.read() if query in (None, _STDIN) else query or "")


def _other(text: str, version: Version) -> tuple[str, Snapshot]:
    name, separator, uri = text.partition("=")
    if not separator or not uri or not _NAME.fullmatch(name) or name.lower() == "dataset":
        problem = f"{text!r} is not of the form NAME=URI, with a name other than dataset"
        raise typer.BadParameter(problem, param_hint="'--table'")
    return name.lower(), version.locate(uri).open().snapshot
