"""HTML of datasets, fragments, versions, indices and refs in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice
from typing import TypeVar

from lancelake.core.table import Table
from lancelake.core.values.metadata import Fragment, Snapshot, public_schema, size

_MOST_COLUMNS = 50
_MOST_ROWS = 100

T = TypeVar("T")


class NotebookList(list[T]):
    """A list that notebooks show as a table, at most 100 rows of it."""

    def __init__(
        self,
        items: Iterable[T],
        header: Sequence[str],
        cells: Callable[[T], Sequence[object]],
        *,
        is_newest_last: bool = False,
    ) -> None:
        super().__init__(items)
        self._header, self._cells = header, cells
        self._is_newest_last = is_newest_last

    def _repr_html_(self) -> str:
        order = reversed(self) if self._is_newest_last else iter(self)
        rows = [self._cells(item) for item in islice(order, _MOST_ROWS)]
        left = len(self) - len(rows)
        return table_html(self._header, [*rows, *([(f"… {left:,} more",)] if left else ())])


def dataset_html(snapshot: Snapshot) -> str:
    """Return a summary of a version, its columns and indices."""
    summary = Table(snapshot).descriptions.summary()
    rows = "?" if summary.rows is None else f"{summary.rows:,}"
    facts = [
        ("version", f"{summary.version:,} of {summary.latest_version:,}"),
        ("rows", rows),
        ("size", size(summary.data_bytes)),
        ("fragments", f"{summary.counts.total_fragments:,}"),
        ("tags", ", ".join(name for name, _ in summary.tags)),
        ("branches", ", ".join(name for name, _ in summary.branches)),
    ]
    schema = public_schema(snapshot.manifest.schema)
    columns = [(f.name, str(f.type), "" if f.nullable else "not null") for f in schema]
    left = len(columns) - _MOST_COLUMNS
    more = [(f"… {left:,} more", "", "")] if left > 0 else []
    indices = [(i.name, i.kind, ", ".join(i.columns)) for i in summary.indices]
    return "".join(
        [
            f"<div><b>Lance table</b> <code>{escape(summary.uri)}</code></div>",
            table_html((), [fact for fact in facts if fact[1]]),
            table_html(("column", "type", ""), [*columns[:_MOST_COLUMNS], *more]),
            table_html(("index", "kind", "columns"), indices) if indices else "",
        ]
    )


def fragment_html(fragment: Fragment) -> str:
    """Return the rows and files of a fragment."""
    live = "?" if fragment.live_rows is None else f"{fragment.live_rows:,}"
    rows = [
        ("rows", live),
        ("deleted", f"{(fragment.physical_rows or 0) - (fragment.live_rows or 0):,}"),
        *(("data file", file.path) for file in fragment.files),
    ]
    return f"<div><b>Lance fragment</b> {fragment.id}</div>" + table_html((), rows)


def table_html(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose cells are text."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in row)
        + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"
