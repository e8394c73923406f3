"""Line charts as SVG, with no script and no request: colors come from the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 10.0, 34.0
NINES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
LOWEST_MS = 0.5


@dataclass(frozen=True)
class Series:
    """A line: (x, y) in the units of the chart, and the number of its color."""

    name: str
    color: int
    points: tuple[tuple[float, float], ...]
    marks: tuple[float, ...] = ()
    """Where to put a mark at the bottom, in the unit of x."""


def nines(percentile: float) -> float:
    """Equal steps for 90, 99 and 99.9."""
    return -math.log10(max(1e-9, 1 - percentile / 100))


def percentile_chart(series: Sequence[Series], width: float, height: float) -> ET.Element:
    furthest = max((x for line in series for x, _ in line.points), default=nines(99.9))
    ticks = [(nines(p), f"{p:g} %") for p in NINES if nines(p) <= furthest + 0.01]
    return _chart(
        series, (0.0, max(furthest, nines(90.0))), ticks, "records answered within the latency", width, height
    )


def time_chart(series: Sequence[Series], seconds: float, width: float, height: float) -> ET.Element:
    step = next(s for s in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 10**9) if seconds / s <= 8)
    ticks = [(float(at), f"{at} s") for at in range(0, int(seconds) + 1, step)]
    return _chart(series, (0.0, max(1.0, seconds)), ticks, "seconds into the measurement", width, height)


def _chart(
    series: Sequence[Series],
    across: tuple[float, float],
    ticks: Sequence[tuple[float, str]],
    label: str,
    width: float,
    height: float,
) -> ET.Element:
    values = [y for line in series for _, y in line.points]
    low = 10 ** math.floor(math.log10(max(LOWEST_MS, min(values, default=1.0))))
    high = 10 ** math.ceil(math.log10(max(low * 10, max(values, default=10.0))))

    def x_of(value: float) -> float:
        return LEFT + (value - across[0]) / (across[1] - across[0]) * (width - LEFT - RIGHT)

    def y_of(ms: float) -> float:
        share = math.log10(max(ms, low) / low) / math.log10(high / low)
        return height - BOTTOM - share * (height - TOP - BOTTOM)

    svg = ET.Element("svg", {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", "aria-label": label})
    decade = low
    while decade <= high * 1.0001:
        _line(svg, "grid", LEFT, y_of(decade), width - RIGHT, y_of(decade))
        _text(svg, LEFT - 6, y_of(decade) + 4, f"{decade:g}", "end")
        decade *= 10
    for place, (value, text) in enumerate(ticks):
        _line(svg, "grid", x_of(value), TOP, x_of(value), height - BOTTOM)
        anchor = "start" if place == 0 else "end" if place == len(ticks) - 1 and x_of(value) > width - 40 else "middle"
        _text(svg, x_of(value), height - BOTTOM + 14, text, anchor)
    _text(svg, width / 2, height - 4, f"{label}; latency in ms", "middle")
    for place, line in enumerate(series):
        points = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line.points)
        drawn = ET.SubElement(svg, "polyline", {"class": f"line c{line.color}", "points": points})
        ET.SubElement(drawn, "title").text = line.name
        for mark in line.marks:
            bottom = height - BOTTOM - 3 * place
            _line(svg, f"mark c{line.color}", x_of(mark), bottom, x_of(mark), bottom - 9)
    return svg


def _line(svg: ET.Element, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
    places = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    ET.SubElement(svg, "line", {"class": kind, **{name: f"{place:.1f}" for name, place in places.items()}})


def _text(svg: ET.Element, x: float, y: float, text: str, anchor: str) -> None:
    ET.SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}).text = text
