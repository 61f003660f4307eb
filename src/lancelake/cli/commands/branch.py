"""List, create and delete branches."""

from __future__ import annotations

from typing import Annotated

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, RowFormat
from lancelake.cli.options import (
    CommandModule,
    Message,
    NamedTable,
    Output,
    RowOutput,
    Version,
    argument,
)
from lancelake.cli.report import (
    Listing,
    TextColumn,
    cut,
    print_listing,
    report,
    report_list,
    report_version,
    right,
    target_text,
)
from lancelake.core.table_place import TablePlace
from lancelake.core.values.descriptions import branch_document
from lancelake.core.values.writes import CommitChoices
from lancelake.errors import LanceTableError

commands = CommandModule(
    "List, create and delete branches.", example="create photos.lance experiment"
)

Name = Annotated[str, argument("NAME", "Name of the branch.")]


@commands.add("list", example="photos.lance")
def list_command(at: NamedTable, output: RowOutput = RowFormat.TABLE) -> None:
    """List all branches."""
    main = TablePlace(at.place.open().snapshot.main_location)
    branches = main.branches()
    heads = {name: _head(main, name) for name in branches}
    if output is not RowFormat.TABLE:
        items = [{**branch_document(n, b), "latest_version": heads[n]} for n, b in branches.items()]
        report_list(output, {"uri": main.location.uri, "branches": items}, items)
        return
    listing = Listing([cut("branch"), TextColumn("from"), right("latest")])
    for name, branch in branches.items():
        origin = target_text(branch.parent_branch or "main", branch.parent_version)
        listing.add(phrases.printable(name), phrases.printable(origin), str(heads[name] or "?"))
    print_listing(listing, phrases.plural(len(branches), "branch", "branches"))


@commands.add("create", example="photos.lance experiment")
def create_command(
    version: Version, name: Name, message: Message = None, output: Output = OutputFormat.TABLE
) -> None:
    """Create a branch at a version."""
    table = version.open()
    source = table.snapshot
    created = table.refs.create_branch(name, CommitChoices(message=message))
    body = {"parent_branch": source.branch, "parent_version": source.version}
    origin = target_text(source.branch or "main", source.version)
    report_version(output, created, body, [("from", phrases.printable(origin))])


@commands.add("delete", example="photos.lance trial")
def delete_command(at: NamedTable, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Delete a branch with all its versions, unless another branch was forked from it."""
    table = at.place.open()
    before = table.refs.branch(name)
    table.refs.remove_branch(name)
    origin = target_text(before.parent_branch or "main", before.parent_version)
    uri = table.snapshot.main_location.uri
    body = {"uri": uri, "deleted": branch_document(name, before)}
    text = Text.assemble(
        phrases.printable(name), (f"  was from {phrases.printable(origin)}", "dim")
    )
    report(output, body, [("deleted", text)])


def _head(main: TablePlace, name: str) -> int | None:
    """Return the newest version of a branch; None if it has none that can be read."""
    try:
        return main.branch(name).latest_version().version
    except LanceTableError:
        return None
