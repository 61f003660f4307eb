"""List the fragments and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import RowFormat
from lancelake.cli.options import CommandModule, RowOutput, Version
from lancelake.cli.report import Listing, TextColumn, cut, print_listing, report_list, right
from lancelake.core.values.descriptions import file_format
from lancelake.core.values.versions import version_rows

if TYPE_CHECKING:
    from lancelake.core.table import Table
    from lancelake.core.values.metadata import BaseId, Fragment, Snapshot

commands = CommandModule()


@commands.add(example="photos.lance")
def files(version: Version, output: RowOutput = RowFormat.TABLE) -> None:
    """List the fragments and their files."""
    table = version.open()
    if output is not RowFormat.TABLE:
        body = table.descriptions.files()
        report_list(output, body, body["fragments"])
        return
    snapshot = table.snapshot
    has_bases = bool(snapshot.manifest.base_paths)
    numbers = [right(name) for name in ("fragment", "rows", "deleted", "size")]
    more = [right("columns", is_optional=True), TextColumn("format", is_optional=True)]
    bases = [TextColumn("base")] if has_bases else []
    listing = Listing([*numbers, *more, *bases, cut("file")])
    for fragment in snapshot.manifest.fragments:
        _add(listing, snapshot, fragment, has_bases=has_bases)
    print_listing(listing, _totals(table))


def _add(listing: Listing, snapshot: Snapshot, fragment: Fragment, *, has_bases: bool) -> None:
    deleted = "" if fragment.deletion_file is None else phrases.number(fragment.num_deleted_rows)
    first = [str(fragment.id), phrases.number(fragment.physical_rows), deleted]
    for file in fragment.files:
        base = [_base(file.base_id)] if has_bases else []
        size = "?" if file.file_size_bytes is None else phrases.size(file.file_size_bytes)
        live = str(sum(1 for f in file.fields if f >= 0))
        path = Text(phrases.printable(file.path))
        listing.add(*first, size, live, file_format(file), *base, path)
        first = [""] * len(first)
    if fragment.deletion_file is not None:
        place = snapshot.files.deletion_file(fragment.id, fragment.deletion_file)
        base = [_base(fragment.deletion_file.base_id)] if has_bases else []
        listing.add(
            *[""] * 5, fragment.deletion_file.file_type.value, *base, place.path, style="dim"
        )
    if not fragment.files:
        listing.add(*first, *[""] * (len(listing.columns) - 4), Text("no files", "dim"))


def _totals(table: Table) -> str:
    counts = table.history.summarize()
    parts = [
        phrases.plural(counts.total_fragments, "fragment"),
        phrases.plural(counts.total_data_files, "data file"),
        phrases.size(counts.total_files_size),
        f"{phrases.number(version_rows(table.snapshot))} rows",
        f"{counts.total_deletion_file_rows:,} deleted",
    ]
    return ", ".join(parts)


def _base(base_id: BaseId | None) -> str:
    return "" if base_id is None else str(base_id)
