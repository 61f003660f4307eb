"""`lancelake merge`: merge files into a table by key."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import (
    Branch,
    Delimiter,
    Message,
    Output,
    Partitions,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.report import report, version_body, version_rows
from lancelake.cli.sources.partitions import partition_columns
from lancelake.cli.sources.places import find_sources
from lancelake.cli.sources.readers import FOLDER_SUFFIXES, SourceFormat
from lancelake.cli.sources.stream import Sources
from lancelake.format.arrow_schema import public_schema
from lancelake.format.primary_key import key_names
from lancelake.table.merge.clauses import (
    DeleteRow,
    Duplicates,
    Fail,
    InsertAll,
    Matched,
    MergeSpec,
    UpdateAll,
)
from lancelake.table.merge.run import MergeCounts, Merged, merge
from lancelake.table.publish import CommitChoices

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class WhenMatched(Enum):
    """Action for rows of the table whose key is in the source."""

    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"
    KEEP = "keep"


Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        show_default=False,
        help="Files, folders, patterns such as 'day-*.parquet' or objects such as s3://bucket/day; "
        "- for an Arrow stream on standard input.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="A,B",
        show_default=False,
        help="Key columns, separated by commas. By default, the table's primary key.",
    ),
]
IfMatched = Annotated[
    WhenMatched,
    typer.Option("--matched", help="Action for rows of the table whose key is in the files."),
]
MatchedIf = Annotated[
    str | None,
    typer.Option(
        "--matched-if",
        metavar="SQL",
        show_default=False,
        help="Condition of --matched, on source.x (files) and target.x (table).",
    ),
]
Insert = Annotated[
    bool, typer.Option("--insert/--no-insert", help="Whether rows with a new key are inserted.")
]
DeleteMissing = Annotated[
    bool,
    typer.Option(
        "--delete-missing", help="Delete rows of the table whose key is not in the files."
    ),
]
LastWins = Annotated[
    bool,
    typer.Option(
        "--last-wins", help="If source rows have the same key, use the last one instead of failing."
    ),
]
Format = Annotated[
    SourceFormat | None,
    typer.Option(
        "--format",
        show_default=False,
        help="Format of the files, if it cannot be inferred from their names.",
    ),
]
MergeSchema = Annotated[
    bool, typer.Option("--merge-schema", help="Add columns that the table does not have.")
]


@app.command("merge")
def merge_command(
    uri: Uri,
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
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Merge files into a table by key, in one version.

    Rows with an existing key are updated, others are inserted.
    """
    files = find_sources(sources, options, FOLDER_SUFFIXES)
    base = open_head(location(uri, options), branch)
    spec = MergeSpec(
        on=column_names(on, "--on") or key_names(base.manifest.schema),
        matched=_clauses(matched, matched_if),
        not_matched=(InsertAll(),) if insert else (),
        not_matched_by_source=(DeleteRow(),) if delete_missing else (),
        duplicates=Duplicates.LAST_WINS if last_wins else Duplicates.REFUSE,
        adds_columns=merge_schema,
        casts=True,
    )
    reading = Sources(
        files=files,
        format=format,
        types=public_schema(base.manifest.schema),
        delimiter=delimiter,
        partitions=partition_columns([f.name for f in files]) if partitions else {},
    )
    rows = reading.reader(is_merging=merge_schema)
    with job_bar("part") as progress:
        done = merge(base, rows, spec, choices=CommitChoices(message=message), progress=progress)
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


def _report(output: OutputFormat, done: Merged) -> None:
    counts = done.counts
    body = {
        **version_body(done.snapshot),
        "inserted": counts.inserted,
        "updated": counts.updated,
        "deleted": counts.deleted,
    }
    report(output, body, [*version_rows(done.snapshot), ("merged", _amount(counts))])


def _amount(counts: MergeCounts) -> str:
    inserted = words.plural(counts.inserted, "row")
    return f"{inserted} inserted, {counts.updated:,} updated, {counts.deleted:,} deleted"
