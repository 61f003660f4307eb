"""Compare two versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from rich.console import Console
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, NamedTable, Output, argument
from lancelake.cli.report import target_text, version_body
from lancelake.cli.rows import logical_type_text
from lancelake.cli.tables import open_at
from lancelake.core.values.descriptions import document, flag_names

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Snapshot
    from lancelake.core.values.versions import (
        ColumnFacts,
        Diff,
        FragmentFacts,
        IndexFacts,
        Pair,
        RefsBetween,
    )

commands = CommandModule()

T = TypeVar("T")
_VALUE_MOST = 60

First = Annotated[str, argument("BEFORE", "A version, as for --at.")]
Second = Annotated[str, argument("AFTER", "The version to compare it with.")]


@commands.add(example="photos.lance 1 2")
def diff_command(
    at: NamedTable, before: First, after: Second = "latest", output: Output = OutputFormat.TABLE
) -> None:
    """Compare two versions: columns, settings, fragments, rows and indices.

    Each version is followed by its tags and by the branches forked from it. AFTER defaults to the
    latest version.
    """
    table = open_at(at.place, before)
    old, new = table.snapshot, open_at(at.place, after).snapshot
    diff = table.history.diff_to(new)
    if output is OutputFormat.JSON:
        ends = {"before": version_body(old), "after": version_body(new)}
        print_json({**ends, "is_empty": diff.is_empty, **document(diff)})
        return
    _print(stdout(), old, new, diff)


def _print(console: Console, old: Snapshot, new: Snapshot, diff: Diff) -> None:
    refs = diff.refs.before, diff.refs.after
    ends = " → ".join(_end(*end) for end in zip((old, new), refs, strict=True))
    console.print(Text.assemble(("version  ", "dim"), (phrases.printable(ends), "bold")))
    if diff.is_empty:
        console.print(Text("no differences", style="dim"))
        return
    rows = " → ".join(phrases.number(n) for n in (diff.rows.before, diff.rows.after))
    console.print(Text.assemble(("rows     ", "dim"), rows))
    _section(console, "columns", [_with_both_names(pair) for pair in diff.columns], _column)
    _section(console, "config", diff.config, _value)
    _section(console, "table metadata", diff.table_metadata, _value)
    _section(console, "schema metadata", diff.schema_metadata, _value)
    _section(console, "features", [_flags(pair) for pair in diff.features], _value)
    _section(console, "base paths", diff.base_paths, _value)
    _section(console, "fragments", diff.fragments, _fragment)
    _section(console, "indices", diff.indices, _index)


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
    name = phrases.printable(pair.name)
    if pair.before is None and pair.after is not None:
        return Text(f"+ {name}  {text(pair.after)}", style="green")
    if pair.after is None and pair.before is not None:
        return Text(f"- {name}  {text(pair.before)}", style="red")
    sides = [text(side) for side in (pair.before, pair.after) if side is not None]
    return Text(f"~ {name}  {' → '.join(dict.fromkeys(sides))}", style="yellow")


def _value(value: str) -> str:
    return phrases.shorten(phrases.printable(value), _VALUE_MOST)


def _column(column: ColumnFacts) -> str:
    parts = [logical_type_text(column.type), *([] if column.nullable else ["not null"])]
    parts += [f"{k}={_value(v)}" for k, v in sorted(column.metadata.items())]
    return ", ".join(map(phrases.printable, parts))


def _with_both_names(pair: Pair[ColumnFacts]) -> Pair[ColumnFacts]:
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
    files = phrases.plural(len(fragment.files), "file")
    return f"{phrases.number(fragment.rows)} rows{deleted}, {files}"


def _index(index: IndexFacts) -> str:
    columns = phrases.printable(", ".join(index.columns))
    return f"{columns or 'no column'}, {phrases.plural(len(index.segments), 'segment')}"
