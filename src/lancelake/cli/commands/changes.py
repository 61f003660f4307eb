"""`lancelake changes`: row-level changes between two versions."""

from __future__ import annotations

import itertools
import re
from datetime import datetime
from typing import Annotated

import pyarrow as pa
import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat
from lancelake.cli.options import (
    Columns,
    Filter,
    MaxRows,
    RowOutput,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.row_view import print_stream
from lancelake.commit.snapshot import Snapshot
from lancelake.table.change_feed.execute import execute
from lancelake.table.change_feed.planner import plan_changes
from lancelake.table.change_feed.request import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    FEED_NAMES,
    ChangeKind,
    ChangeRequest,
    parse_kinds,
)
from lancelake.table.change_feed.versions import Point
from lancelake.table.open import AtTag, AtVersion, time_reference

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_NUMBER = re.compile(r"[0-9]{1,20}")
_STYLES = {
    ChangeKind.INSERT.value: "green",
    ChangeKind.UPDATE_BEFORE.value: "dim yellow",
    ChangeKind.UPDATE_AFTER.value: "yellow",
    ChangeKind.DELETE.value: "red",
}

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHEN",
        show_default=False,
        help="Changes after this version, TAG or time; 0 for all. By default, those of the "
        "last version.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="WHEN",
        show_default=False,
        help="Changes up to and including this version. By default, the latest.",
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        "--kinds",
        "-k",
        metavar="KIND,...",
        show_default=False,
        help="Only these kinds: insert, update, update_preimage, update_postimage, delete.",
    ),
]


@app.command()
def changes(
    uri: Uri,
    begin: From = None,
    end: To = None,
    kinds: Kinds = None,
    net: Annotated[
        bool, typer.Option("--net", help="Net changes: at most one change per row.")
    ] = False,
    rows: MaxRows = None,
    columns: Columns = None,
    filter: Filter = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show row-level changes between two versions.

    The table must have stable row ids. An updated row is shown twice: before and after the update.
    """
    last = open_at(location(uri, options), end)
    request = ChangeRequest(
        columns=column_names(columns),
        filter=filter,
        kinds=parse_kinds(None if kinds is None else [k.strip() for k in kinds.split(",")]),
        is_net=net,
    )
    plan = plan_changes(last, _point(last, begin), None, request)
    found = itertools.chain.from_iterable(map(execute, plan.tasks))
    print_stream(found, plan.schema, last, output, rows, _for_people)


def _point(last: Snapshot, text: str | None) -> Point:
    if text is None:
        return AtVersion(last.version - 1)
    if _NUMBER.fullmatch(text):
        return AtVersion(int(text))
    try:
        return time_reference(datetime.fromisoformat(text))
    except ValueError:
        return AtTag(text)


def _for_people(found: pa.Table) -> tuple[pa.Table, list[str]]:
    """Put the kind of change first, in short form, and choose the style of each row."""
    styles = [_STYLES[kind] for kind in found[CHANGE_TYPE].to_pylist()]
    named = dict(zip(FEED_NAMES, ("row id", "change", "version", "time"), strict=True))
    tops = ["_commit_version", CHANGE_TYPE, "_rowid"]
    shown = [name for name in found.column_names if name not in FEED_NAMES]
    table = found.drop_columns([COMMIT_TIMESTAMP]).select([*tops, *shown])
    return table.rename_columns([named[name] for name in tops] + shown), styles
