"""List, create, refresh, measure and drop indices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lancelake.cli import phrases, report
from lancelake.cli.console import OutputFormat, RowFormat, job_bar, print_json
from lancelake.cli.options import (
    Change,
    CommandModule,
    Metric,
    Output,
    RefineFactor,
    RowOutput,
    Version,
    argument,
    flag,
    option,
)
from lancelake.cli.pictures import recall_svg
from lancelake.cli.tables import key_values
from lancelake.clock import SystemIds
from lancelake.core.table import Table
from lancelake.core.values import reads
from lancelake.core.values.indices import IndexRequest, IndexRun, RefreshOptions

if TYPE_CHECKING:
    from lancelake.core.values.indices import IndexCoverage
    from lancelake.core.values.metadata import Snapshot
    from lancelake.core.values.reads import Recall

commands = CommandModule(
    "List, create, refresh, measure and drop indices.",
    example="create photos.lance id --kind BTREE",
)

_BAR = 30

Name = Annotated[str, argument("NAME", "Name of the index.")]
Names = Annotated[list[str] | None, argument("[NAME]...", "Names of indices. By default, all.")]
Column = Annotated[str, argument("COLUMN", "Column to index; B.C is field C of struct B.")]
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
    str | None, option("--name", "NAME", "Name of the index. By default, COLUMN_idx.")
]
Replace = Annotated[bool, flag("--replace", "Replace an index of that name on the column.")]
Empty = Annotated[bool, flag("--empty", "Create the index without rows; `refresh` adds them.")]
Parameter = Annotated[
    list[str] | None,
    option(
        "--parameter",
        "KEY=VALUE",
        "Parameter of this kind of index, such as rows_per_zone=1024; repeatable.",
        short="-p",
    ),
]
Merge = Annotated[
    int | None,
    option(
        "--merge",
        "COUNT",
        "Merge only the last COUNT segments with the new rows. By default, all.",
        min=0,
    ),
]
Rebuild = Annotated[bool, flag("--rebuild", "Rebuild the index from all rows.")]


def _svg_file(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before the measurement."""
    if path is not None and path.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{path.name!r} is not the name of an SVG file")
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(path.parent)!r}")
    return path


@commands.add("list", example="photos.lance")
def list_command(version: Version, output: RowOutput = RowFormat.TABLE) -> None:
    """Show all indices, and how much of the table each covers."""
    table = version.open()
    coverage = table.indices.coverage()
    if output is not RowFormat.TABLE:
        items = [_document(each) for each in coverage]
        report.report_list(output, {**report.version_body(table.snapshot), "indices": items}, items)
        return
    names = (report.right(name) for name in ("rows covered", "segments", "size"))
    listing = report.Listing(
        [report.cut("index"), report.TextColumn("kind"), report.cut("column"), *names]
    )
    for each in coverage:
        size = "?" if each.size_bytes is None else phrases.size(each.size_bytes)
        texts = phrases.printable(each.name), each.kind, phrases.printable(each.column)
        listing.add(*texts, _rows_text(each), phrases.number(each.segments), size)
    report.print_listing(listing, phrases.plural(len(coverage), "index", "indices"))


@commands.add("stats", example="photos.lance caption_idx")
def stats_command(version: Version, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Show statistics of an index and of its segments."""
    table = version.open()
    coverage = table.indices.coverage_named(name)
    segments = table.indices.statistics(name)
    body = {**_document(coverage), "segment_statistics": segments}
    report.report_version(output, table.snapshot, body, _rows(coverage, segments or ()))


@commands.add("create", example="photos.lance id --kind BTREE")
def create_command(
    change: Change,
    column: Column,
    kind: Kind = "BTREE",
    name: NewName = None,
    replace: Replace = False,
    empty: Empty = False,
    parameter: Parameter = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Build an index on a column."""
    table = change.open()
    request = IndexRequest(
        column=column,
        kind=kind,
        name=name,
        replace=replace,
        train=not empty,
        parameters=_parameters(parameter),
    )
    with job_bar("row") as step:
        run = IndexRun(choices=change.choices, progress=step)
        indexed = table.indices.create(request, run)
    before = {index.uuid for index in table.snapshot.indices}
    built = next(index.name for index in indexed.indices if index.uuid not in before)
    _report(output, indexed, [built])


@commands.add("refresh", example="photos.lance")
def refresh_command(
    change: Change,
    names: Names = None,
    merge: Merge = None,
    rebuild: Rebuild = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add rows that are not indexed yet, and merge segments.

    No version is created if all rows are indexed and no segments are merged.
    """
    table = change.open()
    how = RefreshOptions(
        index_names=tuple(names) if names else None, num_indices_to_merge=merge, retrain=rebuild
    )
    with job_bar("row") as step:
        run = IndexRun(choices=change.choices, progress=step)
        done = table.indices.refresh(how, run)
    _report(output, done.snapshot, list(done.names), skipped=list(done.skipped))
    done.raise_failure()


@commands.add("recall", example="photos.lance embedding -k 5 --nprobes 1,2")
def recall_command(
    version: Version,
    column: Annotated[
        str | None, argument("COLUMN", "The vector column. By default, the only one of the table.")
    ] = None,
    k: Annotated[
        int, typer.Option("-k", min=1, help="Number of rows per query.")
    ] = reads.DEFAULT_K,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Number of queries: vectors of random rows.")
    ] = reads.DEFAULT_SAMPLE,
    nprobes: Annotated[
        str, typer.Option("--nprobes", metavar="N,...", help="Numbers of partitions to probe.")
    ] = ",".join(map(str, reads.DEFAULT_NPROBES)),
    metric: Metric = None,
    refine_factor: RefineFactor = None,
    seed: Annotated[int | None, option("--seed", "NUMBER", "Seed of the random sample.")] = None,
    plot: Annotated[
        Path | None,
        option(
            "--plot",
            "FILE.svg",
            "Also plot recall against latency as an SVG file.",
            callback=_svg_file,
        ),
    ] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Measure recall and latency of a vector index against exact search."""
    table = version.open()
    request = reads.RecallRequest(
        column=table.vector_column(column),
        k=k,
        sample=sample,
        nprobes=_probe_counts(nprobes),
        metric=None if metric is None else reads.metric_named(metric),
        refine_factor=refine_factor,
    )
    recall = table.measure_recall(request, ids=SystemIds(seed))
    if plot is not None:
        plot.write_text(recall_svg(recall.points, request.k), encoding="utf-8")
    if output is OutputFormat.JSON:
        facts = {"column": request.column, "k": request.k, "queries": recall.queries}
        points = [asdict(point) for point in recall.points]
        print_json({**report.version_body(table.snapshot), **facts, "points": points})
    else:
        _print_recall(request, recall)


@commands.add("drop", example="photos.lance caption_idx")
def drop_command(change: Change, name: Name, output: Output = OutputFormat.TABLE) -> None:
    """Drop an index; its files are kept until a cleanup."""
    done = change.open().indices.drop(name, choices=change.choices)
    report.report_version(output, done, {"dropped": name}, [("dropped", phrases.printable(name))])


def _parameters(pairs: list[str] | None) -> dict[str, Any]:  # what a kind takes
    parameters: dict[str, Any] = {}
    for key, text in key_values(pairs, "KEY=VALUE", "'--parameter'").items():
        try:
            parameters[key] = json.loads(text)
        except ValueError:
            parameters[key] = text
    return parameters


def _probe_counts(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        problem = f"{text!r} is not a list of numbers such as 1,5,20"
        raise typer.BadParameter(problem, param_hint="'--nprobes'")
    return tuple(int(part) for part in parts)


def _document(coverage: IndexCoverage) -> dict[str, Any]:  # JSON
    return {**asdict(coverage), "rows_per_segment": list(coverage.rows_per_segment)}


def _rows_text(coverage: IndexCoverage) -> str:
    text = phrases.number(coverage.rows)
    total = coverage.rows + coverage.unindexed_rows
    return f"{text} of {total:,}" if coverage.unindexed_rows else text


def _rows(
    coverage: IndexCoverage, segments: list[Mapping[str, Any]] | tuple[()]
) -> Iterator[tuple[str, Text | str]]:
    total = coverage.fragments + coverage.unindexed_fragments
    yield "index", Text(phrases.printable(coverage.name), style="bold")
    yield "kind", coverage.kind
    yield "column", phrases.printable(coverage.column)
    yield "rows", _rows_text(coverage)
    yield "fragments", f"{coverage.fragments:,} of {total:,}"
    if coverage.size_bytes is not None:
        yield "size", phrases.size(coverage.size_bytes)
    pairs = zip(coverage.rows_per_segment, segments, strict=False)
    for number, (rows, segment) in enumerate(pairs, start=1):
        numbers = ", ".join(f"{key} {phrases.printable(str(v))}" for key, v in segment.items())
        yield f"segment {number}", Text.assemble(f"{rows:,} rows", (f"  {numbers}", "dim"))


def _report(
    output: OutputFormat, snapshot: Snapshot, names: list[str], *, skipped: list[str] | None = None
) -> None:
    indices = [Table(snapshot).indices.coverage_named(name) for name in names]
    body: dict[str, Any] = {"indices": [_document(each) for each in indices]}
    if skipped is not None:
        body["skipped"] = skipped
    rows: list[tuple[str, Text | str]] = []
    for each in indices:
        label = Text(phrases.printable(each.name), "bold cyan")
        rows.append(("index", label.append(f"  {each.kind}, {_rows_text(each)} rows", style="dim")))
    left = (f"{phrases.printable(name)}: of a kind not known here" for name in skipped or ())
    rows.extend(("skipped", Text(text, style="dim")) for text in left)
    if not indices:
        rows.append(("", Text("nothing to do", style="green")))
    report.report_version(output, snapshot, body, rows)


def _print_recall(request: reads.RecallRequest, recall: Recall) -> None:
    """Print a measurement, exact search as the last line."""
    names = ("nprobes", f"recall@{request.k}", "median", "95 %")
    listing = report.Listing([*map(report.right, names), report.TextColumn("recall")])
    for point in recall.points:
        bar = Text("█" * round(point.recall * _BAR), style="cyan")
        probes = "exact" if point.nprobes is None else str(point.nprobes)
        latencies = f"{point.median_ms:.1f} ms", f"{point.slow_ms:.1f} ms"
        listing.add(probes, f"{point.recall:.3f}", *latencies, bar)
    note = f"{recall.queries} queries of column {phrases.printable(request.column)}"
    report.print_listing(listing, note)
