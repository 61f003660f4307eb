"""`lancelake diff`: compare two versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import Output, StorageOptions, Uri, location
from lancelake.cli.report import target_text, version_body
from lancelake.cli.schema_text import logical_type_text
from lancelake.commit.snapshot import Snapshot
from lancelake.table.describe.documents import document, flag_names
from lancelake.table.diff import (
    ColumnFacts,
    Diff,
    FragmentFacts,
    IndexFacts,
    Pair,
    RefsBetween,
    diff,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

T = TypeVar("T")
_VALUE_MOST = 60

First = Annotated[
    str,
    typer.Argument(metavar="BEFORE", show_default=False, help="A version, as for --at."),
]
Second = Annotated[
    str,
    typer.Argument(metavar="AFTER", show_default=False, help="The version to compare it with."),
]


@app.command("diff")
def diff_command(
    uri: Uri,
    before: First,
    after: Second = "latest",
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Compare two versions: columns, settings, fragments, rows and indices.

    Each version is followed by its tags and by the branches forked from it. AFTER defaults to the
    latest version.
    """
    place = location(uri, options)
    old, new = open_at(place, before), open_at(place, after)
    found = diff(old, new)
    if output is OutputFormat.JSON:
        ends = {"before": version_body(old), "after": version_body(new)}
        print_json({**ends, "is_empty": found.is_empty, **document(found)})
        return
    _print(stdout(), old, new, found)


def _print(console: Console, old: Snapshot, new: Snapshot, found: Diff) -> None:
    refs = found.refs.before, found.refs.after
    ends = " → ".join(_end(*end) for end in zip((old, new), refs, strict=True))
    console.print(Text.assemble(("version  ", "dim"), (words.printable(ends), "bold")))
    if found.is_empty:
        console.print(Text("no differences", style="dim"))
        return
    rows = " → ".join(words.number(n) for n in (found.rows.before, found.rows.after))
    console.print(Text.assemble(("rows     ", "dim"), rows))
    _section(console, "columns", [_renamed(pair) for pair in found.columns], _column)
    _section(console, "config", found.config, _value)
    _section(console, "table metadata", found.table_metadata, _value)
    _section(console, "schema metadata", found.schema_metadata, _value)
    _section(console, "features", [_flags(pair) for pair in found.features], _value)
    _section(console, "base paths", found.base_paths, _value)
    _section(console, "fragments", found.fragments, _fragment)
    _section(console, "indices", found.indices, _index)


def _end(snapshot: Snapshot, refs: RefsBetween | None) -> str:
    """Format a version, and in brackets its other names, as for --at."""
    names = [] if refs is None else [*refs.tags, *(f"{name}:" for name in refs.branches)]
    text = target_text(snapshot.branch, snapshot.version)
    return f"{text} [{', '.join(names)}]" if names else text


def _section(
    console: Console, title: str, pairs: Sequence[Pair[T]], text: Callable[[T], str]
) -> None:
    """Print additions in green, removals in red and changes in yellow."""
    if not pairs:
        return
    console.print()
    console.print(Text(title, style="dim"))
    for pair in pairs:
        console.print(_line(pair, text), no_wrap=True, overflow="ellipsis")


def _line(pair: Pair[T], text: Callable[[T], str]) -> Text:
    name = words.printable(pair.name)
    if pair.before is None and pair.after is not None:
        return Text(f"+ {name}  {text(pair.after)}", style="green")
    if pair.after is None and pair.before is not None:
        return Text(f"- {name}  {text(pair.before)}", style="red")
    sides = [text(side) for side in (pair.before, pair.after) if side is not None]
    return Text(f"~ {name}  {' → '.join(dict.fromkeys(sides))}", style="yellow")


def _value(value: str) -> str:
    return words.shortened(words.printable(value), _VALUE_MOST)


def _column(column: ColumnFacts) -> str:
    parts = [logical_type_text(column.type), *([] if column.nullable else ["not null"])]
    parts += [f"{k}={_value(v)}" for k, v in sorted(column.metadata.items())]
    return ", ".join(map(words.printable, parts))


def _renamed(pair: Pair[ColumnFacts]) -> Pair[ColumnFacts]:
    """Show both names of a renamed column."""
    if pair.before is None or pair.after is None or pair.before.path == pair.after.path:
        return pair
    return replace(pair, name=f"{pair.before.path} → {pair.after.path}")


def _flags(pair: Pair[str]) -> Pair[str]:
    """Format feature flags by name."""
    if not pair.name.endswith("_flags"):
        return pair
    before, after = (
        ", ".join(flag_names(int(v or 0))) or "none" for v in (pair.before, pair.after)
    )
    return replace(pair, before=before, after=after)


def _fragment(fragment: FragmentFacts) -> str:
    deleted = f", {fragment.deleted_rows:,} deleted" if fragment.deleted_rows else ""
    files = words.plural(len(fragment.files), "file")
    return f"{words.number(fragment.rows)} rows{deleted}, {files}"


def _index(index: IndexFacts) -> str:
    columns = words.printable(", ".join(index.columns))
    return f"{columns or 'no column'}, {words.plural(len(index.segments), 'segment')}"
