"""`lancelake branch`: list, create and delete branches."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, RowFormat, stdout
from lancelake.cli.options import (
    At,
    Message,
    Output,
    RowOutput,
    StorageOptions,
    Uri,
    location,
    subcommands,
)
from lancelake.cli.report import report, report_list, target_text, version_body, version_rows
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.commit.versions import latest_version
from lancelake.errors import LanceTableError
from lancelake.storage.location import Location
from lancelake.table.branches import remove_branch
from lancelake.table.clone import create_branch
from lancelake.table.describe.documents import branch_document
from lancelake.table.publish import CommitChoices
from lancelake.table.refs import branch_location, list_branches, load_branch

app = subcommands("List, create and delete branches.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Name of the branch.")
]


@app.command("list")
def list_command(
    uri: Uri, options: StorageOptions = None, output: RowOutput = RowFormat.TABLE
) -> None:
    """List all branches."""
    main = open_at(location(uri, options), None).main_location
    branches = list_branches(main)
    heads = {name: _head(main, name) for name in branches}
    if output is not RowFormat.TABLE:
        items = [{**branch_document(n, b), "latest_version": heads[n]} for n, b in branches.items()]
        report_list(output, {"uri": main.uri, "branches": items}, items)
        return
    table = Listing([cut("branch"), TextColumn("from"), right("latest")])
    for name, branch in branches.items():
        origin = target_text(branch.parent_branch or "main", branch.parent_version)
        table.add(words.printable(name), words.printable(origin), str(heads[name] or "?"))
    console = stdout()
    console.print(table)
    console.print(Text(words.plural(len(branches), "branch", "branches"), style="dim"))


@app.command("create")
def create_command(
    uri: Uri,
    name: Name,
    at: At = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a branch at a version."""
    source = open_at(location(uri, options), at)
    made = create_branch(source, name, CommitChoices(message=message))
    origin = target_text(source.branch or "main", source.version)
    body = {**version_body(made), "parent_branch": source.branch, "parent_version": source.version}
    report(output, body, [*version_rows(made), ("from", words.printable(origin))])


@app.command("delete")
def delete_command(
    uri: Uri, name: Name, options: StorageOptions = None, output: Output = OutputFormat.TABLE
) -> None:
    """Delete a branch with all its versions, unless another branch was forked from it."""
    main = open_at(location(uri, options), None).main_location
    before = load_branch(main, name)
    remove_branch(main, name)
    origin = target_text(before.parent_branch or "main", before.parent_version)
    body = {"uri": main.uri, "deleted": branch_document(name, before)}
    text = Text.assemble(words.printable(name), (f"  was from {words.printable(origin)}", "dim"))
    report(output, body, [("deleted", text)])


def _head(main: Location, name: str) -> int | None:
    """Return the newest version of a branch; None if it has none that can be read."""
    try:
        return latest_version(branch_location(main, name)).version
    except LanceTableError:
        return None
