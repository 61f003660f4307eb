"""Interactive SQL shell: statements end with a semicolon, commands start with a dot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import stdout
from lancelake.cli.schema_text import tree, type_text
from lancelake.cli.tables import Listing, cut
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError

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
            stdout().print(Text(f"Error: {words.printable(str(error))}", style="red"))
        return ""

    def _command(self, text: str) -> None:
        console = stdout()
        command, _, name = text.partition(" ")
        match command:
            case ".tables":
                for known, snapshot in self.tables.items():
                    uri = words.printable(snapshot.location.uri)
                    console.print(Text.assemble((known, "bold"), f"  {uri}"))
            case ".schema":
                self._schema(name.strip() or next(iter(self.tables)))
            case _:
                console.print(_HELP)

    def _schema(self, name: str) -> None:
        snapshot = self.tables.get(name)
        if snapshot is None:
            stdout().print(Text(f"Error: table {words.printable(name)!r} is unknown", style="red"))
            return
        listing = Listing([cut("column"), cut("type")])
        for field, label in tree(snapshot.manifest.schema):
            listing.add(Text(label), Text(type_text(field), "green"))
        stdout().print(listing)
