"""Bar charts of comparisons as SVG, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

_WIDTH = 640
_MARGIN = 16
_ROW = 40
_BAR = 12
_TOP = 44
# Ratios outside are drawn at the edge; the number beside the name is exact.
_LEAST, _MOST = 1 / 16, 4.0
_TICKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
# The card has a background of its own, so that it is readable whatever the page around it does.
_STYLE = """
.card{fill:#ffffff;stroke:#d5dadd}.name,.axis{fill:#263238}.axis{font-size:11px}
.name{font-size:12px}.grid{stroke:#e3e7e9}.one{stroke:#546e7a}.goal{stroke:#263238}
.faster{fill:#00897b}.slower{fill:#d9730d}
@media (prefers-color-scheme:dark){.card{fill:#1f2329;stroke:#3a414a}.name,.axis{fill:#e4e7ea}
.grid{stroke:#343a42}.one{stroke:#aab4bc}.goal{stroke:#e4e7ea}
.faster{fill:#35b8a8}.slower{fill:#f0a04b}}
"""


def ratios(title: str, results: Sequence[dict[str, Any]]) -> str:
    """Return a chart of how many times as long ours takes, on a logarithmic axis around 1.

    Bars to the left are faster than the peer, bars to the right slower; a mark shows the goal.
    """
    height = _TOP + _ROW * len(results) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' font-family="system-ui,sans-serif"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6"/>',
        *(_tick(ratio, height) for ratio in _TICKS),
    ]
    for number, result in enumerate(results):
        parts.append(_bar(result, _TOP + _ROW * number))
    return "\n".join([*parts, "</svg>", ""])


def _tick(ratio: float, height: int) -> str:
    x = _x(ratio)
    label = f"1/{round(1 / ratio)}" if ratio < 1 else f"{ratio:g}"
    kind = "one" if ratio == 1 else "grid"
    return (
        f'<text class="axis" x="{x:.1f}" y="22" text-anchor="middle">{label}</text>'
        f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{height - _MARGIN}"/>'
    )


def _bar(result: dict[str, Any], top: int) -> str:
    ratio, goal = float(result["ratio"]), _x(float(result["target"]))
    left, right = sorted((_x(ratio), _x(1.0)))
    name = f"{result['name']}: {duration(result['ours_s'])}, peer {duration(result['official_s'])}"
    y = top + 20
    return (
        f'<text class="name" x="{_MARGIN}" y="{top + 13}">{escape(name)}'
        f' <tspan font-weight="bold">({ratio:.2f})</tspan></text>'
        f'<rect class="{"faster" if ratio <= 1 else "slower"}" x="{left:.1f}" y="{y}"'
        f' width="{max(right - left, 1):.1f}" height="{_BAR}" rx="2"/>'
        f'<line class="goal" x1="{goal:.1f}" x2="{goal:.1f}" y1="{y - 2}" y2="{y + _BAR + 2}"'
        ' stroke-width="2"/>'
    )


def _x(ratio: float) -> float:
    """Return the place of a ratio on the axis."""
    clipped = min(max(ratio, _LEAST), _MOST)
    share = math.log2(clipped / _LEAST) / math.log2(_MOST / _LEAST)
    return _MARGIN + 8 + share * (_WIDTH - 2 * (_MARGIN + 8))


def duration(seconds: float) -> str:
    """Return seconds with a unit, and three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-6)} us"


def _three_digits(value: float) -> str:
    decimals = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{decimals}f}"
