"""How the parts of an SVG look, in light and in dark."""

from __future__ import annotations

from tailrace.explain import palette
from tailrace.explain.svg_box import SIZE, SMALL


def style() -> str:
    return f"{_RULES}{_colors(palette.light())}@media(prefers-color-scheme:dark){{{_colors(palette.dark())}}}"


def _scoped(rules: dict[str, str]) -> str:
    """Scope each rule to the SVG: the style of an inline SVG otherwise applies to the whole page."""
    return "".join(f".tailrace-stages .{name}{{{rule}}}" for name, rule in rules.items())


_RULES = f".tailrace-stages{{font:{SIZE:g}px/1.4 {palette.FONT};font-variant-numeric:tabular-nums}}" + _scoped(
    {
        "strong": "font-weight:600",
        "end-name": "font-weight:600",
        "label": f"font-size:{SMALL:g}px",
        "line": f"font:{SMALL:g}px {palette.CODE_FONT}",
        "centered": "text-anchor:middle",
        "edge": "fill:none;stroke-width:1.5;opacity:.55",
        "frame": "stroke-dasharray:4 4",
        "flow": "fill:none;stroke-width:5;stroke-linecap:round",
        "pause": "fill:none;stroke-width:2;stroke-dasharray:6 4",
    }
)


def _colors(colors: dict[str, str]) -> str:
    # Values instead of CSS variables, which not every SVG viewer supports.
    ink, soft, faint = colors["ink"], colors["ink-soft"], colors["ink-faint"]
    line, strong_line = colors["line"], colors["line-strong"]
    return _scoped(
        {
            "ground": f"fill:{colors['card']};stroke:{line}",
            "frame": f"fill:none;stroke:{strong_line}",
            "box": f"fill:{colors['raised']};stroke:{strong_line}",
            "title": f"fill:{soft}",
            "strong": f"fill:{ink}",
            "note": f"fill:{ink}",
            "faint": f"fill:{faint}",
            "label": f"fill:{faint}",
            "line": f"fill:{faint}",
            "operator": f"fill:{soft}",
            "ours": f"fill:{colors['accent']}",
            "state": f"fill:{colors['warn']}",
            "end": f"fill:{colors['card']};stroke:{line}",
            "end-name": f"fill:{ink}",
            "edge": f"stroke:{faint}",
            "arrow-head": f"fill:{faint}",
            "plain-mark": f"fill:{strong_line}",
            "ours-mark": f"fill:{colors['accent']}",
            "state-mark": f"fill:{colors['p99']}",
            "slot": f"fill:{colors['p50']};opacity:.6",
            "unknown": f"fill:none;stroke:{colors['p50']};stroke-dasharray:2 2",
            "flow": f"stroke:{colors['p50']}",
            "flow-head": f"fill:{colors['p50']}",
            "pause": f"stroke:{colors['p99']}",
            "badge": f"fill:{colors['card']};stroke:{strong_line}",
        }
    )
