"""Merge files into a table by key."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, column_names, flag, option
from lancelake.cli.report import report_version
from lancelake.cli.source_files import (
    Delimiter,
    Format,
    MergeSchema,
    Partitions,
    Source,
    read_files,
)
from lancelake.core.values.metadata import key_names, public_schema
from lancelake.core.values.writes import (
    DeleteRow,
    Duplicates,
    Fail,
    InsertAll,
    MergeSpec,
    UpdateAll,
)

if TYPE_CHECKING:
    from lancelake.core.values.writes import Matched, RowsChanged

commands = CommandModule()


class WhenMatched(Enum):
    """Action for rows of the table whose key is in the source."""

    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    KEEP = "keep"


On = Annotated[
    str | None,
    option("--on", "A,B", "Key columns, separated by commas. By default, the table's primary key."),
]
IfMatched = Annotated[
    WhenMatched,
    typer.Option("--matched", help="Action for rows of the table whose key is in the files."),
]
MatchedIf = Annotated[
    str | None,
    option(
        "--matched-if", "SQL", "Condition of --matched, on source.x (files) and target.x (table)."
    ),
]
Insert = Annotated[bool, flag("--insert/--no-insert", "Whether rows with a new key are inserted.")]
DeleteMissing = Annotated[
    bool, flag("--delete-missing", "Delete rows of the table whose key is not in the files.")
]
LastWins = Annotated[
    bool,
    flag("--last-wins", "If source rows have the same key, use the last one instead of failing."),
]


@commands.add(example="days.lance day-1.csv --on station")
def merge_command(
    change: Change,
    sources: Source,
    on: On = None,
    matched: IfMatched = WhenMatched.UPDATE,
    matched_if: MatchedIf = None,
    insert: Insert = True,
    delete_missing: DeleteMissing = False,
    last_wins: LastWins = False,
    merge_schema: MergeSchema = False,
    format: Format = None,
    delimiter: Delimiter = None,
    partitions: Partitions = True,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Merge files into a table by key, in one version.

    Rows with an existing key are updated, others are inserted.
    """
    table = change.open()
    schema = table.snapshot.manifest.schema
    spec = MergeSpec(
        on=column_names(on, "--on") or key_names(schema),
        matched=_clauses(matched, matched_if),
        not_matched=(InsertAll(),) if insert else (),
        not_matched_by_source=(DeleteRow(),) if delete_missing else (),
        duplicates=Duplicates.LAST_WINS if last_wins else Duplicates.REFUSE,
        adds_columns=merge_schema,
        casts=True,
    )
    files = read_files(
        sources,
        change,
        format=format,
        delimiter=delimiter,
        has_partitions=partitions,
        types=public_schema(schema),
    )
    rows = files.reader(is_merging=merge_schema)
    with job_bar("part") as progress:
        done = table.merge(rows, spec, choices=change.choices, progress=progress)
    _report(output, done)


def _clauses(matched: WhenMatched, condition: str | None) -> tuple[Matched, ...]:
    match matched:
        case WhenMatched.UPDATE:
            return (UpdateAll(condition=condition),)
        case WhenMatched.DELETE:
            return (DeleteRow(condition=condition),)
        case WhenMatched.FAIL:
            return (Fail(condition=condition),)
        case WhenMatched.KEEP:
            return ()


def _report(output: OutputFormat, done: RowsChanged) -> None:
    counts = asdict(done.counts)
    inserted = phrases.plural(done.counts.inserted, "row")
    text = f"{inserted} inserted, {counts['updated']:,} updated, {counts['deleted']:,} deleted"
    report_version(output, done.snapshot, counts, [("merged", text)])
