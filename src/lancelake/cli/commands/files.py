"""`lancelake files`: list fragments and their files."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import BaseId
from lancelake.table.history import summarize
from lancelake.table.snapshot import Snapshot
from lancelake.table.version_delta import live_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def files(
    uri: Uri, at: At = None, options: StorageOptions = None, output: Output = OutputFormat.TABLE
) -> None:
    """List the fragments and their files."""
    snapshot = open_at(location(uri, options), at)
    if output is OutputFormat.JSON:
        print_json(_document(snapshot))
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
        table.add(*first, size, live, _format(file), *base, path)
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


def _format(file: DataFile) -> str:
    return f"{file.file_major_version}.{file.file_minor_version}"


def _document(snapshot: Snapshot) -> dict[str, Any]:  # JSON
    counts = summarize(snapshot)
    return {
        "uri": snapshot.location.uri,
        "version": snapshot.version,
        "base_paths": {str(b.id): b.path for b in snapshot.manifest.base_paths},
        "fragments": [_fragment(snapshot, f) for f in snapshot.manifest.fragments],
        "totals": {
            "fragments": counts.total_fragments,
            "data_files": counts.total_data_files,
            "deletion_files": counts.total_deletion_files,
            "data_bytes": counts.total_files_size,
            "rows": live_rows(snapshot),
            "deleted_rows": counts.total_deletion_file_rows,
        },
    }


def _fragment(snapshot: Snapshot, fragment: Fragment) -> dict[str, Any]:  # JSON
    deletion = fragment.deletion_file
    return {
        "id": fragment.id,
        "physical_rows": fragment.physical_rows,
        "rows": fragment.live_rows,
        "data_files": [
            {
                "path": file.path,
                "size_bytes": file.file_size_bytes,
                "file_version": _format(file),
                "fields": list(file.fields),
                "column_indices": list(file.column_indices),
                "base_id": file.base_id,
            }
            for file in fragment.files
        ],
        "deletion_file": deletion
        and {
            "path": snapshot.files.deletion_file(fragment.id, deletion).path,
            "deleted_rows": deletion.num_deleted_rows,
            "base_id": deletion.base_id,
        },
    }
