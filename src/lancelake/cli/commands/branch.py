"""List, create and delete branches."""

from __future__ import annotations

from typing import Annotated

from rich.text import Text

from lancelake.cli import options, phrases
from lancelake.cli import report as cli_report
from lancelake.cli.console import OutputFormat, RowFormat
from lancelake.core.table_place import TablePlace
from lancelake.core.values.descriptions import branch_document
from lancelake.core.values.writes import CommitChoices
from lancelake.errors import LanceTableError

commands = options.CommandModule(
    "List, create and delete branches.", example="create photos.lance experiment"
)

Name = Annotated[str, options.argument("NAME", "Name of the branch.")]


@commands.add("list", example="photos.lance")
def list_command(at: options.NamedTable, output: options.RowOutput = RowFormat.TABLE) -> None:
    """List all branches."""
    main = TablePlace(at.place.open().snapshot.main_location)
    branches = main.branches()
    heads = {name: _head(main, name) for name in branches}
    if output is not RowFormat.TABLE:
        items = [{**branch_document(n, b), "latest_version": heads[n]} for n, b in branches.items()]
        cli_report.report_list(output, {"uri": main.location.uri, "branches": items}, items)
        return
    listing = cli_report.Listing(
        [cli_report.cut("branch"), cli_report.TextColumn("from"), cli_report.right("latest")]
    )
    for name, branch in branches.items():
        origin = cli_report.target_text(branch.parent_branch or "main", branch.parent_version)
        listing.add(phrases.printable(name), phrases.printable(origin), str(heads[name] or "?"))
    cli_report.print_listing(listing, phrases.plural(len(branches), "branch", "branches"))


@commands.add("create", example="photos.lance experiment")
def create_command(
    version: options.Version,
    name: Name,
    message: options.Message = None,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """Create a branch at a version."""
    table = version.open()
    source = table.snapshot
    created = table.refs.create_branch(name, CommitChoices(message=message))
    body = {"parent_branch": source.branch, "parent_version": source.version}
    origin = cli_report.target_text(source.branch or "main", source.version)
    cli_report.report_version(output, created, body, [("from", phrases.printable(origin))])


@commands.add("delete", example="photos.lance trial")
def delete_command(
    at: options.NamedTable, name: Name, output: options.Output = OutputFormat.TABLE
) -> None:
    """Delete a branch with all its versions, unless another branch was forked from it."""
    table = at.place.open()
    before = table.refs.branch(name)
    table.refs.remove_branch(name)
    origin = cli_report.target_text(before.parent_branch or "main", before.parent_version)
    uri = table.snapshot.main_location.uri
    body = {"uri": uri, "deleted": branch_document(name, before)}
    text = Text.assemble(
        phrases.printable(name), (f"  was from {phrases.printable(origin)}", "dim")
    )
    cli_report.report(output, body, [("deleted", text)])


def _head(main: TablePlace, name: str) -> int | None:
    """Return the newest version of a branch; None if it has none that can be read."""
    try:
        return main.branch(name).latest_version().version
    except LanceTableError:
        return None
