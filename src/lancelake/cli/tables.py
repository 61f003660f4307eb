"""Draw tables without lines, with numbers right-aligned, within the terminal width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_GAP = 2
_CUT_LEAST = 8


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column; one with a `least` width may be truncated to it, an optional one omitted."""

    name: str
    is_right: bool = False
    is_optional: bool = False
    least: int | None = None
    style: str = "dim"


def right(name: str, *, is_optional: bool = False) -> TextColumn:
    """Return a column of numbers."""
    return TextColumn(name, is_right=True, is_optional=is_optional)


def cut(name: str) -> TextColumn:
    """Return a column that is truncated if there is not enough room."""
    return TextColumn(name, least=_CUT_LEAST)


@dataclass(slots=True)
class Listing:
    """Rows with column headers; a column without header and content is omitted."""

    columns: Sequence[TextColumn]
    rows: list[tuple[list[Text], str]] = field(default_factory=list)

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row."""
        self.rows.append(([Text(c) if isinstance(c, str) else c for c in cells], style))

    def least_width(self) -> int:
        """Return the minimum width of all columns."""
        natural = self._natural_widths()
        return _total(self._least(i, width) for i, width in natural.items())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table within the available width, line by line, since it may be long."""
        widths = self._widths(options.max_width)
        heads = [Text(column.name, style=column.style) for column in self.columns]
        for cells, style in [(heads, ""), *self.rows]:
            line = Text(style=style, no_wrap=True, overflow="ellipsis")
            for i, width in widths.items():
                line.append_text(_fitted(cells[i], width, is_right=self.columns[i].is_right))
                line.append(" " * _GAP)
            line.rstrip()
            yield line

    def _widths(self, room: int) -> dict[int, int]:
        """Omit columns without room; distribute the rest among truncated columns."""
        natural = self._natural_widths()
        widths = {i: self._least(i, width) for i, width in natural.items()}
        for i in reversed(natural):
            if _total(widths.values()) > room and self.columns[i].is_optional:
                del widths[i]
        left = room - _total(widths.values())
        # Columns that need least are served first, so that none gets more than its share.
        hungry = sorted(widths, key=lambda i: natural[i] - widths[i])
        for waiting, i in zip(range(len(hungry), 0, -1), hungry, strict=True):
            more = max(0, min(left // waiting, natural[i] - widths[i]))
            widths[i] += more
            left -= more
        return widths

    def _natural_widths(self) -> dict[int, int]:
        """Return the widths without truncation; columns without content are omitted."""
        widths = [len(column.name) for column in self.columns]
        for cells, _ in self.rows:
            widths = [max(w, cell.cell_len) for w, cell in zip(widths, cells, strict=True)]
        return {i: width for i, width in enumerate(widths) if width}

    def _least(self, position: int, natural: int) -> int:
        column = self.columns[position]
        if column.least is None:
            return natural
        return min(natural, max(column.least, len(column.name)))


def facts(rows: Iterable[tuple[str, Text | str]]) -> Table:
    """Return a list of dim names with their values."""
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table


def _fitted(cell: Text, width: int, *, is_right: bool) -> Text:
    lack = width - cell.cell_len
    if lack < 0:
        cut_cell = cell.copy()
        cut_cell.truncate(width, overflow="ellipsis")
        return cut_cell
    blank = Text(" " * lack)
    return blank.append_text(cell) if is_right else cell + blank


def _total(widths: Iterable[int]) -> int:
    return sum(width + _GAP for width in widths) - _GAP
