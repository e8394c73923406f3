"""The picture as a page of its own, for a desk and for a phone."""

from __future__ import annotations

from html import escape
from xml.etree import ElementTree as ET

from tailrace.check.description import QueryShape
from tailrace.check.formatting import duration_in_words
from tailrace.explain import palette, wording
from tailrace.explain.svg import draw_stages

DESK, PHONE = 1160.0, 316.0
# The space around the picture: the page's margin and the card's.
AROUND = 2 * (20 + 17)


def draw_html(shape: QueryShape) -> str:
    """A self-contained page. A phone gets its own picture instead of a smaller one, so the text stays readable."""
    body = _stages(shape) + _epoch(shape) if shape.stages else f"<p class=card>{escape(wording.NOTHING_KNOWN)}</p>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Stages of the query · Tailrace</title>
<style>{_style()}</style>
</head>
<body>
<header>{_ICON}<h1>Tailrace</h1><p>how the query runs in Real-Time Mode</p></header>
<main>
{_figures(shape)}{body}
</main>
</body>
</html>
"""


def _figures(shape: QueryShape) -> str:
    slots = "?" if shape.slots is None else f"{shape.slots:,}"
    figures = {
        "stages, all at the same time" if len(shape.stages) > 1 else "stage": str(len(shape.stages)),
        "task slots": slots,
        "state": "yes" if shape.stateful else "none",
        "epoch": duration_in_words(shape.epoch_ms) if shape.epoch_ms else "unknown",
    }
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in figures.items())
    return f'<dl class="card figures">{shown}</dl>\n'


def _stages(shape: QueryShape) -> str:
    desk, desk_width = draw_stages(shape, DESK)
    phone, phone_width = draw_stages(shape, PHONE)
    rules = (
        f".desk{{display:none}}.phone svg{{max-width:{1.4 * phone_width:g}px}}"
        f"@media(min-width:{desk_width + AROUND:g}px){{.desk{{display:block}}.phone{{display:none}}}}"
    )
    return f"""<section class="card stages" aria-labelledby="stages">
<style>{rules}</style>
<h2 id="stages">Stages</h2>
<div class="desk">{inline(desk)}</div>
<div class="phone">{inline(phone)}</div>
<p class="sum">{escape(wording.all_at_once(shape))}</p>
</section>
"""


def _epoch(shape: QueryShape) -> str:
    steps = "".join(f"<li>{escape(step)}</li>" for step in wording.epoch_steps(shape))
    return f"""<section class="card" aria-labelledby="epoch">
<h2 id="epoch">{escape(wording.epoch_heading(shape))}</h2>
<ol>{steps}</ol>
<p class="pause">{escape(wording.epoch_pause())}</p>
</section>"""


def inline(svg: ET.Element) -> str:
    """The SVG for embedding in a page, where it needs no namespace."""
    return ET.tostring(svg, encoding="unicode")


def _style() -> str:
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colors.items()) for colors in (palette.light(), palette.dark())
    )
    return f":root{{color-scheme:light dark;{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{_RULES}"


_ICON = (
    '<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8" '
    'fill="#0d5c75"/><path d="M5 20c4 0 4-8 8-8s4 8 8 8 4-5 6-6" fill="none" stroke="#fff" stroke-width="3" '
    'stroke-linecap="round"/></svg>'
)

_RULES = f"""
* {{ box-sizing: border-box; margin: 0; }}
body {{
  margin: 0 auto; max-width: 1260px; padding: 0 20px 32px; background: var(--ground); color: var(--ink);
  font: 14px/1.45 {palette.FONT}; font-variant-numeric: tabular-nums;
}}
header {{ display: flex; flex-wrap: wrap; align-items: center; gap: 4px 9px; padding: 14px 0; }}
h1 {{ font-size: 16px; font-weight: 650; letter-spacing: -0.01em; }}
header p {{ margin-left: 7px; color: var(--ink-faint); font-size: 13px; }}
h2 {{ margin-bottom: 12px; font-size: 13px; font-weight: 600; }}
main {{ display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; }}
.card {{
  padding: 16px; min-width: 0; background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  overflow-wrap: anywhere;
}}
.figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 14px; }}
dt {{ color: var(--ink-soft); font-size: 12px; }}
dd {{ font-size: 26px; font-weight: 600; line-height: 1.25; letter-spacing: -0.02em; }}
.stages svg {{ display: block; max-width: 100%; height: auto; margin: 0 auto; }}
.phone svg {{ width: 100%; }}
.sum {{ margin-top: 14px; font-weight: 600; }}
ol {{ padding: 0; list-style: none; counter-reset: step; }}
li {{ position: relative; padding: 0 0 12px 34px; counter-increment: step; }}
li::before {{
  content: counter(step); position: absolute; z-index: 1; left: 0; top: -1px; width: 22px; height: 22px;
  border: 1px solid var(--line-strong); border-radius: 50%; background: var(--card); color: var(--ink-soft);
  font-size: 12px; line-height: 20px; text-align: center;
}}
li::after {{ content: ""; position: absolute; left: 10px; top: 0; bottom: 0; border-left: 2px solid var(--p99); }}
li:last-child::after {{ bottom: 50%; }}
.pause {{ padding-left: 34px; color: var(--ink-faint); font-size: 13px; }}
@media (min-width: 960px) {{
  ol {{
    display: flex;
    background: repeating-linear-gradient(90deg, var(--p99) 0 6px, #0000 6px 10px) 50% 25px / calc(100% - 180px) 2px
      no-repeat;
  }}
  ol::before, ol::after {{
    content: "{wording.FLOWS}"; flex: 0 0 84px; height: 24px; border-bottom: 5px solid var(--p50);
    color: var(--ink-faint); font-size: 12px; text-align: center;
  }}
  li {{ flex: 1; padding: 46px 8px 14px; text-align: center; }}
  li::before {{ left: calc(50% - 11px); top: 14px; }}
  li::after {{ content: none; }}
  .pause {{ padding: 0; text-align: center; }}
}}
@media (max-width: 699px) {{
  body {{ padding: 0 10px 24px; }}
  main {{ gap: 10px; }}
  .card {{ padding: 12px; border-radius: 10px; }}
  .figures {{ grid-template-columns: repeat(2, 1fr); }}
}}
"""
