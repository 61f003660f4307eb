"""`lancelake show`: show a stored manifest, transaction or ref."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, assert_never

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.outline import outline
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidNameError, NotFoundError, RefNotFoundError
from lancelake.table.describe.documents import (
    branch_document,
    manifest_document,
    tag_document,
    transaction_document,
)
from lancelake.table.refs import load_branch, load_tag

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class ShownObject(Enum):
    """The object to show."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    REF = "ref"


@app.command()
def show(
    uri: Uri,
    what: Annotated[
        ShownObject,
        typer.Argument(
            metavar="WHAT", show_default=False, help="What to show: manifest, transaction or ref."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", show_default=False, help="Name of the tag or branch, if a ref is shown."
        ),
    ] = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show a stored manifest, transaction or ref."""
    if (name is not None) != (what is ShownObject.REF):
        wants = "needs a" if what is ShownObject.REF else "takes no"
        raise typer.BadParameter(f"{what.value} {wants} name", param_hint="'NAME'")
    snapshot = open_at(location(uri, options), at)
    body = _document(snapshot, what, name or "")
    if output is OutputFormat.JSON:
        print_json(body)
        return
    console = stdout()
    for line in outline(body):
        console.print(line, no_wrap=True, overflow="ellipsis")


def _document(snapshot: Snapshot, what: ShownObject, name: str) -> dict[str, Any]:  # JSON
    body: dict[str, Any]
    match what:
        case ShownObject.MANIFEST:
            body = manifest_document(snapshot)
        case ShownObject.TRANSACTION:
            body = _transaction(snapshot)
        case ShownObject.REF:
            body = _ref(snapshot, name)
        case _:
            assert_never(what)
    return body


def _transaction(snapshot: Snapshot) -> dict[str, Any]:  # JSON
    found = snapshot.transaction
    if found is None:
        problem = "the transaction of this version is not recorded, or was removed"
        raise NotFoundError(
            problem,
            table=snapshot.location.uri,
            version=snapshot.version,
            action="The manifest is complete without it: lancelake show URI manifest.",
        )
    body: dict[str, Any] = transaction_document(found)
    return body


def _ref(snapshot: Snapshot, name: str) -> dict[str, Any]:  # JSON
    main = snapshot.main_location
    body: dict[str, Any]
    try:
        body = tag_document(name, load_tag(main, name))
    except (RefNotFoundError, InvalidNameError):
        try:
            body = branch_document(name, load_branch(main, name))
        except (RefNotFoundError, InvalidNameError) as error:
            problem = f"tag or branch {name!r} does not exist"
            action = "`lancelake info` lists the tags and branches."
            raise RefNotFoundError(problem, table=main.uri, action=action) from error
    return body
