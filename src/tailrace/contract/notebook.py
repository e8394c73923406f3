"""Results in a notebook: tables, findings and a small chart as HTML. Every text is escaped.

The colors are those of the notebook, which may be light or dark; only marks have their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from tailrace.contract.findings import Finding, Severity

MARKS = {Severity.BLOCKING: "#d64545", Severity.WARNING: "#c98a1b", Severity.NOTE: "#8a94a0"}
LINES = ("#1d9a86", "#d9822b", "#8a94a0")

_FAINT = "opacity:.7"
_CELL = "padding:2px 10px 2px 0;border-bottom:1px solid rgba(128,128,128,.3);white-space:nowrap"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 150, 52, 20


def card(title: str, *parts: str) -> str:
    """The view of one result."""
    style = "max-width:860px;overflow-x:auto;font-variant-numeric:tabular-nums;line-height:1.45"
    return f'<div class="tailrace" style="{style}"><strong>{escape(title)}</strong>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    return f'<div style="{_FAINT}">{escape(text)}</div>' if text else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a column of names, and columns of figures."""

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ["left"] + ["right"] * (len(cells) - 1)
        return "".join(
            f'<{tag} style="{_CELL};text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    style = "border-collapse:collapse;margin:8px 0"
    return f'<table style="{style}"><thead><tr>{line("th", columns)}</tr></thead><tbody>{body}</tbody></table>'


def findings(found: Iterable[Finding]) -> str:
    return "".join(
        f'<div style="border-left:3px solid {MARKS[one.severity]};padding-left:9px;margin:8px 0">'
        f'<div>{escape(one.heading)} <code style="{_FAINT}">{escape(one.code)}</code></div>'
        f"<div>{escape(one.detail)}</div>{f'<div>→ {escape(one.fix)}</div>' if one.fix else ''}</div>"
        for one in found
    )


def chart(lines: Mapping[str, Sequence[tuple[float, float]]], *, x_label: str, y_label: str) -> str:
    """Lines over time, on a logarithmic scale; nothing if there are not two points to connect."""
    points = [point for line in lines.values() for point in line]
    times = {x for x, _ in points}
    if len(times) < 2:
        return ""
    low = math.floor(math.log10(max(min(y for _, y in points), 0.001)))
    high = max(math.ceil(math.log10(max(y for _, y in points) or 1.0)), low + 1)
    first, last = min(times), max(times)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDTH - _LEFT - 10) * (x - first) / (last - first)
        share = (math.log10(max(y, 10**low)) - low) / (high - low)
        return across, 8 + (_HEIGHT - _BOTTOM - 8) * (1 - share)

    drawn = []
    for exponent in range(low, high + 1):
        _, y = place(first, 10**exponent)
        drawn.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" opacity=".2"/>'
            f'<text x="{_LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{10.0**exponent:,g}</text>'
        )
    for (_, line), color in zip(lines.items(), LINES, strict=False):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    legend = " · ".join(
        f'<span style="color:{color}">━</span> {escape(name)}' for name, color in zip(lines, LINES, strict=False)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" style="max-width:100%" '
        f'aria-label="{escape(y_label)}" font-size="11" fill="currentColor">{"".join(drawn)}'
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 4}" text-anchor="end">{escape(x_label)}</text></svg>'
        f"<div>{legend} <span style='{_FAINT}'>{escape(y_label)}</span></div>"
    )
