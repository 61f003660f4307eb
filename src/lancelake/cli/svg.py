"""SVG documents."""

from __future__ import annotations

from collections.abc import Iterable


def svg(width: int, height: int, elements: Iterable[str]) -> str:
    """Return elements on a white ground as an SVG document."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *elements,
            "</svg>",
            "",
        ]
    )
