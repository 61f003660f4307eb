"""`lancelake files`: list fragments and their files."""

from __future__ import annotations

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.options import At, RowOutput, StorageOptions, Uri, location
from lancelake.cli.report import report_list
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.format.ids import BaseId
from lancelake.table.describe.files import file_format, files_document
from lancelake.table.history import summarize
from lancelake.table.version_delta import live_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def files(
    uri: Uri, at: At = None, options: StorageOptions = None, output: RowOutput = RowFormat.TABLE
) -> None:
    """List the fragments and their files."""
    snapshot = open_at(location(uri, options), at)
    if output is not RowFormat.TABLE:
        body = files_document(snapshot)
        report_list(output, body, body["fragments"])
        return
    has_bases = bool(snapshot.manifest.base_paths)
    numbers = [right(name) for name in ("fragment", "rows", "deleted", "size")]
    more = [right("columns", is_optional=True), TextColumn("format", is_optional=True)]
    bases = [TextColumn("base")] if has_bases else []
    table = Listing([*numbers, *more, *bases, cut("file")])
    for fragment in snapshot.manifest.fragments:
        _add(table, snapshot, fragment, has_bases=has_bases)
    console = stdout()
    console.print(table)
    console.print(Text(_totals(snapshot), style="dim"))


def _add(table: Listing, snapshot: Snapshot, fragment: Fragment, *, has_bases: bool) -> None:
    deleted = "" if fragment.deletion_file is None else words.number(fragment.num_deleted_rows)
    first = [str(fragment.id), words.number(fragment.physical_rows), deleted]
    for file in fragment.files:
        base = [_base(file.base_id)] if has_bases else []
        size = "?" if file.file_size_bytes is None else words.size(file.file_size_bytes)
        live = str(sum(1 for f in file.fields if f >= 0))
        path = Text(words.printable(file.path))
        table.add(*first, size, live, file_format(file), *base, path)
        first = [""] * len(first)
    if fragment.deletion_file is not None:
        place = snapshot.files.deletion_file(fragment.id, fragment.deletion_file)
        base = [_base(fragment.deletion_file.base_id)] if has_bases else []
        table.add(*[""] * 5, fragment.deletion_file.file_type.value, *base, place.path, style="dim")
    if not fragment.files:
        table.add(*first, *[""] * (len(table.columns) - 4), Text("no files", "dim"))


def _totals(snapshot: Snapshot) -> str:
    counts = summarize(snapshot)
    parts = [
        words.plural(counts.total_fragments, "fragment"),
        words.plural(counts.total_data_files, "data file"),
        words.size(counts.total_files_size),
        f"{words.number(live_rows(snapshot))} rows",
        f"{counts.total_deletion_file_rows:,} deleted",
    ]
    return ", ".join(parts)


def _base(base_id: BaseId | None) -> str:
    return "" if base_id is None else str(base_id)
