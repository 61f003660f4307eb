"""Show row-level changes between two versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa

from lancelake.cli.console import RowFormat
from lancelake.cli.options import (
    Columns,
    CommandModule,
    Filter,
    MaxRows,
    NamedTable,
    RowOutput,
    column_names,
    flag,
    option,
)
from lancelake.cli.rows import print_stream
from lancelake.cli.tables import open_at
from lancelake.core.values.versions import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    FEED_NAMES,
    ROW_ID,
    AtTag,
    AtVersion,
    ChangeKind,
    ChangeRequest,
    parse_kinds,
    run,
    time_reference,
)
from lancelake.errors import InvalidRequestError

if TYPE_CHECKING:
    from lancelake.core.values.versions import Point

commands = CommandModule()

_NUMBER = re.compile(r"[0-9]{1,20}")
_STYLES = {
    ChangeKind.INSERT.value: "green",
    ChangeKind.UPDATE_BEFORE.value: "dim yellow",
    ChangeKind.UPDATE_AFTER.value: "yellow",
    ChangeKind.DELETE.value: "red",
}
# The columns of the feed that are shown first, by the names that they get.
_FIRST = {COMMIT_VERSION: "version", CHANGE_TYPE: "change", ROW_ID: "row id"}

From = Annotated[
    str | None,
    option(
        "--from",
        "WHEN",
        "Changes after this version, TAG or time; 0 for all. By default, those of the "
        "last version.",
    ),
]
To = Annotated[
    str | None,
    option("--to", "WHEN", "Changes up to and including this version. By default, the latest."),
]
Kinds = Annotated[
    str | None,
    option(
        "--kinds",
        "KIND,...",
        "Only these kinds: insert, update, update_preimage, update_postimage, delete.",
        short="-k",
    ),
]


@commands.add(example="photos.lance --from 1 -o jsonl")
def changes(
    at: NamedTable,
    begin: From = None,
    end: To = None,
    kinds: Kinds = None,
    net: Annotated[bool, flag("--net", "Net changes: at most one change per row.")] = False,
    rows: MaxRows = None,
    columns: Columns = None,
    filter: Filter = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show row-level changes between two versions.

    The table must have stable row ids. An updated row is shown twice: before and after the update.
    """
    last = open_at(at.place, end)
    request = ChangeRequest(
        columns=column_names(columns),
        filter=filter,
        kinds=parse_kinds(None if kinds is None else [k.strip() for k in kinds.split(",")]),
        is_net=net,
    )
    first = AtVersion(last.snapshot.version - 1) if begin is None else _point(begin)
    reader = run(last.history.changes(first, None, request))
    print_stream(reader, reader.schema, last.snapshot, output, rows, _for_people)


def _point(text: str) -> Point:
    if _NUMBER.fullmatch(text):
        return AtVersion(int(text))
    try:
        return time_reference(text)
    except InvalidRequestError:
        return AtTag(text)


def _for_people(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """Put the kind of change first, in short form, and choose the style of each row."""
    styles = [_STYLES[kind] for kind in rows[CHANGE_TYPE].to_pylist()]
    others = [name for name in rows.column_names if name not in FEED_NAMES]
    table = rows.drop_columns([COMMIT_TIMESTAMP]).select([*_FIRST, *others])
    return table.rename_columns([*_FIRST.values(), *others]), styles
