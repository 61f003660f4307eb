"""Merge files into a table by key."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from lancelake.cli import phrases, source_files
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, column_names, flag, option
from lancelake.cli.report import report_version
from lancelake.core.values import writes
from lancelake.core.values.metadata import key_names, public_schema

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
    sources: source_files.Source,
    on: On = None,
    matched: IfMatched = WhenMatched.UPDATE,
    matched_if: MatchedIf = None,
    insert: Insert = True,
    delete_missing: DeleteMissing = False,
    last_wins: LastWins = False,
    merge_schema: source_files.MergeSchema = False,
    format: source_files.Format = None,
    delimiter: source_files.Delimiter = None,
    partitions: source_files.Partitions = True,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Merge files into a table by key, in one version.

    Rows with an existing key are updated, others are inserted.
    """
    table = change.open()
    schema = table.snapshot.manifest.schema
    spec = writes.MergeSpec(
        on=column_names(on, "--on") or key_names(schema),
        matched=_clauses(matched, matched_if),
        not_matched=(writes.InsertAll(),) if insert else (),
        not_matched_by_source=(writes.DeleteRow(),) if delete_missing else (),
        duplicates=writes.Duplicates.LAST_WINS if last_wins else writes.Duplicates.REFUSE,
        adds_columns=merge_schema,
        casts=True,
    )
    files = source_files.read_files(
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
            return (writes.UpdateAll(condition=condition),)
        case WhenMatched.DELETE:
            return (writes.DeleteRow(condition=condition),)
        case WhenMatched.FAIL:
            return (writes.Fail(condition=condition),)
        case WhenMatched.KEEP:
            return ()


def _report(output: OutputFormat, done: RowsChanged) -> None:
    counts = asdict(done.counts)
    inserted = phrases.plural(done.counts.inserted, "row")
    text = f"{inserted} inserted, {counts['updated']:,} updated, {counts['deleted']:,} deleted"
    report_version(output, done.snapshot, counts, [("merged", text)])
