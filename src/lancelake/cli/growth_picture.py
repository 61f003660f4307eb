"""Picture of the growth of a table: rows by version, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelake.table.describe.growth import GrowthPoint

_WIDTH, _HEIGHT, _MARGIN = 720, 320, 60
_TICKS = 4
_MOST_LABELS = 12


def growth_picture(points: Sequence[GrowthPoint]) -> str:
    """Draw a bar for the rows of each version."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *_axes(points),
            *_bars(points),
            "</svg>",
            "",
        ]
    )


def _axes(points: Sequence[GrowthPoint]) -> Iterator[str]:
    most = _most(points)
    for tick in range(_TICKS + 1):
        y = _y(most * tick / _TICKS, most)
        yield f'<line x1="{_MARGIN}" x2="{_WIDTH - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        label = f"{most * tick / _TICKS:,.0f}"
        yield f'<text x="{_MARGIN - 8}" y="{y + 4}" text-anchor="end">{label}</text>'
    yield f'<text x="{_MARGIN}" y="24">rows by version</text>'


def _bars(points: Sequence[GrowthPoint]) -> Iterator[str]:
    most = _most(points)
    step = (_WIDTH - 20 - _MARGIN) / max(1, len(points))
    every = max(1, len(points) // _MOST_LABELS)
    for i, point in enumerate(points):
        x, y = round(_MARGIN + i * step + step * 0.1, 1), _y(point.rows, most)
        height = round(_y(0, most) - y, 1)
        title = f"version {point.version}: {point.rows:,} rows"
        yield (
            f'<rect x="{x}" y="{y}" width="{round(step * 0.8, 1)}" height="{height}" '
            f'fill="#0a7ea4"><title>{title}</title></rect>'
        )
        if i % every == 0:
            middle, bottom = round(x + step * 0.4, 1), _HEIGHT - _MARGIN + 32
            yield f'<text x="{middle}" y="{bottom}" text-anchor="middle">{point.version}</text>'


def _most(points: Sequence[GrowthPoint]) -> int:
    return max((point.rows for point in points), default=0) or 1


def _y(rows: float, most: int) -> float:
    return round(_HEIGHT - _MARGIN + 14 - rows / most * (_HEIGHT - 2 * _MARGIN), 1)
