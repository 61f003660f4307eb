"""Show a stored manifest, transaction or ref."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, assert_never

import typer
from rich.text import Text

from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Output, Version, argument
from lancelake.cli.phrases import printable, shorten
from lancelake.core.table import Table
from lancelake.core.values.descriptions import branch_document, tag_document, transaction_document
from lancelake.errors import InvalidNameError, NotFoundError, RefNotFoundError

Json = Any  # what the json module takes
_INDENT = "  "
_VALUE_MOST = 100
_ITEMS_ON_A_LINE = 16
_NOTHING: tuple[Json, ...] = (None, "", [], {})


def outline(value: Json, *, indent: str = "") -> Iterator[Text]:
    """Yield the lines of a document; absent and empty fields are omitted."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each not in _NOTHING:
                yield from _member(Text(f"{indent}{printable(str(key))}:", "cyan"), each, indent)
        return
    for each in value:
        lines = iter([_short(each)]) if _fits(each) else outline(each, indent="")
        # The dash of a list item is on the first line of the item.
        dash = f"{indent}- "
        for line in lines:
            yield Text.assemble((dash, "dim"), line)
            dash = f"{indent}  "


def _member(head: Text, value: Json, indent: str) -> Iterator[Text]:
    if _fits(value):
        yield Text.assemble(head, " ", _short(value))
    else:
        yield head
        yield from outline(value, indent=indent + _INDENT)


def _fits(value: Json) -> bool:
    """Whether a value fits on one line: a scalar, or a list of a few numbers."""
    if isinstance(value, dict):
        return not value
    if isinstance(value, list):
        is_flat = all(isinstance(each, int | float | None) for each in value)
        return is_flat and len(value) <= _ITEMS_ON_A_LINE
    return True


def _short(value: Json) -> Text:
    if isinstance(value, str):
        return Text(shorten(printable(value), _VALUE_MOST))
    return Text(json.dumps(value), style="dim" if value is None else "")


commands = CommandModule()


class ShownObject(Enum):
    """The object to show."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    REF = "ref"


@commands.add(example="photos.lance transaction")
def show(
    version: Version,
    what: Annotated[ShownObject, argument("WHAT", "What to show: manifest, transaction or ref.")],
    name: Annotated[
        str | None, argument("NAME", "Name of the tag or branch, if a ref is shown.")
    ] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show a stored manifest, transaction or ref."""
    if (name is not None) != (what is ShownObject.REF):
        wants = "needs a" if what is ShownObject.REF else "takes no"
        raise typer.BadParameter(f"{what.value} {wants} name", param_hint="'NAME'")
    body = _document(version.open(), what, name or "")
    if output is OutputFormat.JSON:
        print_json(body)
        return
    console = stdout()
    for line in outline(body):
        console.print(line, no_wrap=True, overflow="ellipsis")


def _document(table: Table, what: ShownObject, name: str) -> dict[str, Any]:  # JSON
    body: dict[str, Any]
    match what:
        case ShownObject.MANIFEST:
            body = table.descriptions.manifest()
        case ShownObject.TRANSACTION:
            body = _transaction(table)
        case ShownObject.REF:
            body = _ref(table, name)
        case _:
            assert_never(what)
    return body


def _transaction(table: Table) -> dict[str, Any]:  # JSON
    transaction = table.snapshot.transaction
    if transaction is None:
        problem = "the transaction of this version is not recorded, or was removed"
        raise NotFoundError(
            problem,
            table=table.location.uri,
            version=table.snapshot.version,
            action="The manifest is complete without it: lancelake show URI manifest.",
        )
    body: dict[str, Any] = transaction_document(transaction)
    return body


def _ref(table: Table, name: str) -> dict[str, Any]:  # JSON
    body: dict[str, Any]
    try:
        body = tag_document(name, table.refs.tag(name))
    except (RefNotFoundError, InvalidNameError):
        try:
            body = branch_document(name, table.refs.branch(name))
        except (RefNotFoundError, InvalidNameError) as error:
            problem = f"tag or branch {name!r} does not exist"
            action = "`lancelake info` lists the tags and branches."
            uri = table.snapshot.main_location.uri
            raise RefNotFoundError(problem, table=uri, action=action) from error
    return body
