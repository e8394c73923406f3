"""An epoch boundary in SVG: rows flow, pause for a moment, and flow again."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tailrace.check.description import QueryShape
from tailrace.explain import wording
from tailrace.explain.svg_box import LINE, SIZE, element, written
from tailrace.explain.text_width import wrap_to_width

BADGE = 10.0
LEAST_STEP, FLOW = 128.0, 84.0


def draw_epoch_end(shape: QueryShape, width: float) -> tuple[list[ET.Element], float]:
    """The steps along a line if they fit, else one below the other; also returns the height."""
    step = (width - 2 * FLOW) / len(wording.epoch_steps(shape))
    return _along_a_line(shape, width, step) if step >= LEAST_STEP else _in_a_list(shape, width)


def _along_a_line(shape: QueryShape, width: float, step: float) -> tuple[list[ET.Element], float]:
    y = 34.0
    parts = [
        element("path", class_="flow", d=f"M3 {y:g}H{FLOW:g}"),
        element("path", class_="pause", d=f"M{FLOW + 6:g} {y:g}H{width - FLOW - 6:g}"),
        element("path", class_="flow", d=f"M{width - FLOW:g} {y:g}H{width - 9:g}"),
        element("path", class_="flow-head", d=f"M{width:g} {y:g}l-10 -7v14z"),
        element("text", text=wording.FLOWS, class_="label centered", x=FLOW / 2, y=y - 18),
        element("text", text=wording.epoch_pause(), class_="label centered", x=width / 2, y=y - 18),
        element("text", text=wording.FLOWS, class_="label centered", x=width - FLOW / 2, y=y - 18),
    ]
    bottom = y
    for position, words in enumerate(wording.epoch_steps(shape)):
        x = FLOW + (position + 0.5) * step
        lines = wrap_to_width(words, SIZE, step - 12)
        parts += [*_badge(position, x, y), written(lines, x, y + 29, "note centered")]
        bottom = max(bottom, y + 20 + LINE * len(lines))
    return parts, bottom


def _in_a_list(shape: QueryShape, width: float) -> tuple[list[ET.Element], float]:
    indent, y = 30.0, 0.0
    parts: list[ET.Element] = []
    tops = []
    for position, words in enumerate(wording.epoch_steps(shape)):
        tops.append(y + 11)
        lines = wrap_to_width(words, SIZE, width - indent)
        parts += [*_badge(position, BADGE + 1, tops[-1]), written(lines, indent, y + 15, "note")]
        y += LINE * len(lines) + 9
    lines = wrap_to_width(wording.epoch_pause(), SIZE, width - indent)
    parts.append(written(lines, indent, y + 13, "faint"))
    line = element("path", class_="pause", d=f"M{BADGE + 1:g} {tops[0]:g}V{tops[-1]:g}")
    return [line, *parts], y + LINE * len(lines)


def _badge(position: int, x: float, y: float) -> list[ET.Element]:
    return [
        element("circle", class_="badge", cx=x, cy=y, r=BADGE),
        element("text", text=str(position + 1), class_="label centered", x=x, y=y + 4),
    ]
