"""How the parts of an SVG look, in light and in dark."""

from __future__ import annotations

from tailrace.explain import palette
from tailrace.explain.svg_box import SIZE, SMALL


def style() -> str:
    return f"{_RULES}{_colours(palette.light())}@media(prefers-color-scheme:dark){{{_colours(palette.dark())}}}"


def _scoped(rules: dict[str, str]) -> str:
    """Scope each rule to the SVG: the style of an inline SVG otherwise applies to the whole page."""
    return "".join(f".tailrace-stages .{name}{{{rule}}}" for name, rule in rules.items())


_RULES = f".tailrace-stages{{font:{SIZE:g}px/1.4 {palette.FONT};font-variant-numeric:tabular-nums}}" + _scoped(
    {
        "strong": "font-weight:600",
        "end-name": "font-weight:600",
        "label": f"font-size:{SMALL:g}px",
        "line": f"font:{SMALL:g}px {palette.CODE_FONT}",
        "centred": "text-anchor:middle",
        "edge": "fill:none;stroke-width:1.5;opacity:.55",
        "frame": "stroke-dasharray:4 4",
        "flow": "fill:none;stroke-width:5;stroke-linecap:round",
        "pause": "fill:none;stroke-width:2;stroke-dasharray:6 4",
    }
)


def _colours(colours: dict[str, str]) -> str:
    # Values instead of CSS variables, which not every SVG viewer supports.
    ink, soft, faint = colours["ink"], colours["ink-soft"], colours["ink-faint"]
    line, strong_line = colours["line"], colours["line-strong"]
    return _scoped(
        {
            "ground": f"fill:{colours['card']};stroke:{line}",
            "frame": f"fill:none;stroke:{strong_line}",
            "box": f"fill:{colours['raised']};stroke:{strong_line}",
            "title": f"fill:{soft}",
            "strong": f"fill:{ink}",
            "note": f"fill:{ink}",
            "faint": f"fill:{faint}",
            "label": f"fill:{faint}",
            "line": f"fill:{faint}",
            "operator": f"fill:{soft}",
            "ours": f"fill:{colours['accent']}",
            "state": f"fill:{colours['warn']}",
            "end": f"fill:{colours['card']};stroke:{line}",
            "end-name": f"fill:{ink}",
            "edge": f"stroke:{faint}",
            "arrow-head": f"fill:{faint}",
            "plain-mark": f"fill:{strong_line}",
            "ours-mark": f"fill:{colours['accent']}",
            "state-mark": f"fill:{colours['p99']}",
            "slot": f"fill:{colours['p50']};opacity:.6",
            "unknown": f"fill:none;stroke:{colours['p50']};stroke-dasharray:2 2",
            "flow": f"stroke:{colours['p50']}",
            "flow-head": f"fill:{colours['p50']}",
            "pause": f"stroke:{colours['p99']}",
            "badge": f"fill:{colours['card']};stroke:{strong_line}",
        }
    )
