"""Show row-level changes between two versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa

from lancelake.cli import options
from lancelake.cli.console import RowFormat
from lancelake.cli.rows import print_stream
from lancelake.cli.tables import open_at
from lancelake.core.values import versions
from lancelake.errors import InvalidRequestError

if TYPE_CHECKING:
    from lancelake.core.values.versions import Point

commands = options.CommandModule()

_NUMBER = re.compile(r"[0-9]{1,20}")
_STYLES = {
    versions.ChangeKind.INSERT.value: "green",
    versions.ChangeKind.UPDATE_BEFORE.value: "dim yellow",
    versions.ChangeKind.UPDATE_AFTER.value: "yellow",
    versions.ChangeKind.DELETE.value: "red",
}
# The columns of the feed that are shown first, by the names that they get.
_FIRST = {
    versions.COMMIT_VERSION: "version",
    versions.CHANGE_TYPE: "change",
    versions.ROW_ID: "row id",
}

From = Annotated[
    str | None,
    options.option(
        "--from",
        "WHEN",
        "Changes after this version, TAG or time; 0 for all. By default, those of the "
        "last version.",
    ),
]
To = Annotated[
    str | None,
    options.option(
        "--to", "WHEN", "Changes up to and including this version. By default, the latest."
    ),
]
Kinds = Annotated[
    str | None,
    options.option(
        "--kinds",
        "KIND,...",
        "Only these kinds: insert, update, update_preimage, update_postimage, delete.",
        short="-k",
    ),
]


@commands.add(example="photos.lance --from 1 -o jsonl")
def changes(
    at: options.NamedTable,
    begin: From = None,
    end: To = None,
    kinds: Kinds = None,
    net: Annotated[bool, options.flag("--net", "Net changes: at most one change per row.")] = False,
    rows: options.MaxRows = None,
    columns: options.Columns = None,
    filter: options.Filter = None,
    output: options.RowOutput = RowFormat.TABLE,
) -> None:
    """Show row-level changes between two versions.

    The table must have stable row ids. An updated row is shown twice: before and after the update.
    """
    last = open_at(at.place, end)
    request = versions.ChangeRequest(
        columns=options.column_names(columns),
        filter=filter,
        kinds=versions.parse_kinds(
            None if kinds is None else [k.strip() for k in kinds.split(",")]
        ),
        is_net=net,
    )
    first = versions.AtVersion(last.snapshot.version - 1) if begin is None else _point(begin)
    reader = versions.run(last.history.changes(first, None, request))
    print_stream(reader, reader.schema, last.snapshot, output, rows, _for_people)


def _point(text: str) -> Point:
    if _NUMBER.fullmatch(text):
        return versions.AtVersion(int(text))
    try:
        return versions.time_reference(text)
    except InvalidRequestError:
        return versions.AtTag(text)


def _for_people(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """Put the kind of change first, in short form, and choose the style of each row."""
    styles = [_STYLES[kind] for kind in rows[versions.CHANGE_TYPE].to_pylist()]
    others = [name for name in rows.column_names if name not in versions.FEED_NAMES]
    table = rows.drop_columns([versions.COMMIT_TIMESTAMP]).select([*_FIRST, *others])
    return table.rename_columns([*_FIRST.values(), *others]), styles
