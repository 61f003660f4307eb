"""`lancelake index`: indices of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at, open_head
from lancelake.cli.console import OutputFormat, RowFormat, stdout
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import (
    At,
    Branch,
    Message,
    Metric,
    Output,
    RefineFactor,
    RowOutput,
    StorageOptions,
    Uri,
    location,
    subcommands,
)
from lancelake.cli.recall_view import print_recall, probe_counts, recall_picture, svg_file
from lancelake.cli.report import report, report_list, version_body, version_rows
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.index.vector.metric import metric_named
from lancelake.scan.nearest import DEFAULT_K
from lancelake.scan.search.recall import (
    DEFAULT_NPROBES,
    DEFAULT_SAMPLE,
    RecallRequest,
    measure_recall,
)
from lancelake.scan.search.request import vector_column
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.drop import drop_index
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.index.request import IndexRequest
from lancelake.table.index.statistics import (
    IndexCoverage,
    coverage_named,
    coverage_of,
    segment_statistics,
)
from lancelake.table.publish import CommitChoices

app = subcommands("List, create, refresh, measure and drop indices.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the index.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", show_default=False, help="Names of indices. By default, all."
    ),
]
Column = Annotated[
    str,
    typer.Argument(
        metavar="COLUMN", show_default=False, help="Column to index; B.C is field C of struct B."
    ),
]
Kind = Annotated[
    str,
    typer.Option(
        "--kind",
        "-k",
        metavar="KIND",
        help="BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER, NGRAM, INVERTED, IVF_FLAT, IVF_SQ, "
        "IVF_PQ, IVF_RQ, IVF_HNSW_FLAT, IVF_HNSW_SQ or IVF_HNSW_PQ.",
    ),
]
NewName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        show_default=False,
        help="Name of the index. By default, COLUMN_idx.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace an index of that name on the column.")
]
Empty = Annotated[
    bool, typer.Option("--empty", help="Create the index without rows; `refresh` adds them.")
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="KEY=VALUE",
        show_default=False,
        help="Parameter of this kind of index, such as rows_per_zone=1024; repeatable.",
    ),
]
Merge = Annotated[
    int | None,
    typer.Option(
        "--merge",
        metavar="COUNT",
        min=0,
        show_default=False,
        help="Merge only the last COUNT segments with the new rows. By default, all.",
    ),
]
Rebuild = Annotated[bool, typer.Option("--rebuild", help="Rebuild the index from all rows.")]


@app.command("list")
def list_command(
    uri: Uri, at: At = None, options: StorageOptions = None, output: RowOutput = RowFormat.TABLE
) -> None:
    """Show all indices, and how much of the table each covers."""
    snapshot = open_at(location(uri, options), at)
    found = coverage_of(snapshot)
    if output is not RowFormat.TABLE:
        items = [_document(each) for each in found]
        report_list(output, {**version_body(snapshot), "indices": items}, items)
        return
    table = Listing(
        [
            cut("index"),
            TextColumn("kind"),
            cut("column"),
            right("rows covered"),
            right("segments"),
            right("size"),
        ]
    )
    for each in found:
        size = "?" if each.size_bytes is None else words.size(each.size_bytes)
        names = words.printable(each.name), each.kind, words.printable(each.column)
        table.add(*names, _covered(each), words.number(each.segments), size)
    console = stdout()
    console.print(table)
    console.print(Text(f"{len(found)} {'index' if len(found) == 1 else 'indices'}", style="dim"))


@app.command("stats")
def stats_command(
    uri: Uri,
    name: Name,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show statistics of an index and of its segments."""
    snapshot = open_at(location(uri, options), at)
    found = coverage_named(snapshot, name)
    segments = segment_statistics(snapshot, name)
    body = {**version_body(snapshot), **_document(found), "segment_statistics": segments}
    report(output, body, _rows(snapshot, found, segments or ()))


@app.command("create")
def create_command(
    uri: Uri,
    column: Column,
    kind: Kind = "BTREE",
    name: NewName = None,
    replace: Replace = False,
    empty: Empty = False,
    parameter: Parameter = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Build an index on a column."""
    base = open_head(location(uri, options), branch)
    request = IndexRequest(
        column=column,
        kind=kind,
        name=name,
        replace=replace,
        train=not empty,
        parameters=_parameters(parameter),
    )
    with job_bar("row") as step:
        made = create_index(base, request, _run(message, step))
    before = {index.uuid for index in base.indices}
    built = next(index.name for index in made.indices if index.uuid not in before)
    _report(output, made, [built])


@app.command("refresh")
def refresh_command(
    uri: Uri,
    names: Names = None,
    merge: Merge = None,
    rebuild: Rebuild = False,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add rows that are not indexed yet, and merge segments.

    No version is created if all rows are indexed and no segments are merged.
    """
    base = open_head(location(uri, options), branch)
    how = RefreshOptions(
        index_names=tuple(names) if names else None, num_indices_to_merge=merge, retrain=rebuild
    )
    with job_bar("row") as step:
        done = refresh_indices(base, how, _run(message, step))
    _report(output, done.snapshot, list(done.names), skipped=list(done.skipped))


@app.command("recall")
def recall_command(
    uri: Uri,
    column: Annotated[
        str | None,
        typer.Argument(
            metavar="COLUMN",
            show_default=False,
            help="The vector column. By default, the only one of the table.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of rows per query.")] = DEFAULT_K,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Number of queries: vectors of random rows.")
    ] = DEFAULT_SAMPLE,
    nprobes: Annotated[
        str, typer.Option("--nprobes", metavar="N,...", help="Numbers of partitions to probe.")
    ] = ",".join(map(str, DEFAULT_NPROBES)),
    metric: Metric = None,
    refine_factor: RefineFactor = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="NUMBER", show_default=False, help="Seed of the random sample."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            show_default=False,
            callback=svg_file,
            help="Also plot recall against latency as an SVG file.",
        ),
    ] = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Measure recall and latency of a vector index against exact search."""
    snapshot = open_at(location(uri, options), at)
    request = RecallRequest(
        column=vector_column(snapshot, column),
        k=k,
        sample=sample,
        nprobes=probe_counts(nprobes),
        metric=None if metric is None else metric_named(metric),
        refine_factor=refine_factor,
    )
    measured = measure_recall(snapshot, request, ids=SystemIds(seed))
    if plot is not None:
        plot.write_text(recall_picture(measured.points, request.k), encoding="utf-8")
    print_recall(snapshot, request, measured, output)


@app.command("drop")
def drop_command(
    uri: Uri,
    name: Name,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Drop an index; its files are kept until a cleanup."""
    base = open_head(location(uri, options), branch)
    made = drop_index(base, name, choices=CommitChoices(message=message))
    body = {**version_body(made), "dropped": name}
    rows = [*version_rows(made), ("dropped", Text(words.printable(name)))]
    report(output, body, rows)


def _run(message: str | None, step: Any) -> IndexRun:  # the bar's type is private
    return IndexRun(choices=CommitChoices(message=message), progress=step)


def _parameters(given: list[str] | None) -> dict[str, Any]:  # what a kind takes
    found: dict[str, Any] = {}
    for text in given or ():
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="'--parameter'")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _document(found: IndexCoverage) -> dict[str, Any]:  # JSON
    return {**asdict(found), "rows_per_segment": list(found.rows_per_segment)}


def _covered(found: IndexCoverage) -> str:
    text = words.number(found.rows)
    total = found.rows + found.unindexed_rows
    return f"{text} of {total:,}" if found.unindexed_rows else text


def _rows(
    snapshot: Snapshot, found: IndexCoverage, segments: list[Mapping[str, Any]] | tuple[()]
) -> Iterator[tuple[str, Text | str]]:
    yield from version_rows(snapshot)
    yield "index", Text(words.printable(found.name), style="bold")
    yield "kind", found.kind
    yield "column", words.printable(found.column)
    yield "rows", f"{_covered(found)}"
    yield "fragments", f"{found.fragments:,} of {found.fragments + found.unindexed_fragments:,}"
    if found.size_bytes is not None:
        yield "size", words.size(found.size_bytes)
    for number, (rows, segment) in enumerate(
        zip(found.rows_per_segment, segments, strict=False), start=1
    ):
        numbers = ", ".join(f"{key} {words.printable(str(v))}" for key, v in segment.items())
        yield f"segment {number}", Text.assemble(f"{rows:,} rows", (f"  {numbers}", "dim"))


def _report(
    output: OutputFormat, made: Snapshot, names: list[str], *, skipped: list[str] | None = None
) -> None:
    found = [coverage_named(made, name) for name in names]
    body: dict[str, Any] = {**version_body(made), "indices": [_document(each) for each in found]}
    if skipped is not None:
        body["skipped"] = skipped
    rows: list[tuple[str, Text | str]] = [*version_rows(made)]
    for each in found:
        label = Text(words.printable(each.name), "bold cyan")
        rows.append(("index", label.append(f"  {each.kind}, {_covered(each)} rows", style="dim")))
    left = (f"{words.printable(name)}: of a kind not known here" for name in skipped or ())
    rows.extend(("skipped", Text(text, style="dim")) for text in left)
    if not found:
        rows.append(("", Text("nothing to do", style="green")))
    report(output, body, rows)
