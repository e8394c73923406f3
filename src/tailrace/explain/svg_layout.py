"""The positions of the boxes and of the lines between them: left to right if they fit, else top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tailrace.check.description import QueryShape
from tailrace.explain import wording
from tailrace.explain.layers import Layers, Place, layers_of
from tailrace.explain.svg_box import SMALL, Rect, StageBox, element, written
from tailrace.explain.text_width import text_width

LEAST_BOX, WIDEST_BOX = 232.0, 330.0
SIDE_GAP, ROW_GAP = 132.0, 18.0
DOWN_GAP, COLUMN_GAP = 52.0, 24.0
LANE, LANE_MARGIN = 11.0, 16.0
CORNER = 7.0


@dataclass(frozen=True)
class Layout:
    parts: Sequence[ET.Element]
    width: float
    height: float


def lay_out(shape: QueryShape, width: float) -> Layout:
    layers = layers_of(shape)
    if layers.is_tree:
        side = (width + SIDE_GAP) / layers.layers - SIDE_GAP
        if side >= LEAST_BOX:
            return _sideways(shape, layers, min(side, WIDEST_BOX))
        column = (width + COLUMN_GAP) / layers.columns - COLUMN_GAP
        if column >= LEAST_BOX or layers.columns == 1:
            return _downwards(shape, layers, min(column, WIDEST_BOX))
    return _one_below_the_other(shape, layers, width)


def _boxes(shape: QueryShape, places: Sequence[Place], width: float) -> dict[int, StageBox]:
    gutter = wording.most_marks(shape)
    return {
        place.number: StageBox(place.stage, width, gutter, sink="" if place.feeds else shape.sink or "")
        for place in places
    }


def _sideways(shape: QueryShape, layers: Layers, width: float) -> Layout:
    boxes = _boxes(shape, layers.places, width)
    heights = [0.0] * layers.columns
    for place in layers.places:
        taken = slice(place.column, place.column + place.columns)
        missing = boxes[place.number].height - sum(heights[taken]) - ROW_GAP * (place.columns - 1)
        if missing > 0:
            heights[taken] = [height + missing / place.columns for height in heights[taken]]
    tops = [sum(heights[:row]) + ROW_GAP * row for row in range(layers.columns)]
    rects = {}
    for place in layers.places:
        last = place.column + place.columns - 1
        middle = (tops[place.column] + tops[last] + heights[last]) / 2
        height = boxes[place.number].height
        rects[place.number] = Rect(place.layer * (width + SIDE_GAP), middle - height / 2, width, height)
    lines = [part for place in layers.places for part in _lines_from_left(place, rects)]
    drawn = [boxes[number].drawn(rect) for number, rect in rects.items()]
    right = max(rect.right for rect in rects.values())
    return Layout([*lines, *drawn], right, max(rect.bottom for rect in rects.values()))


def _downwards(shape: QueryShape, layers: Layers, width: float) -> Layout:
    boxes = _boxes(shape, layers.places, width)
    rects: dict[int, Rect] = {}
    y = 0.0
    for layer in range(layers.layers):
        places = layers.in_layer(layer)
        height = max(boxes[place.number].height for place in places)
        for place in places:
            middle = (place.column + place.columns / 2) * (width + COLUMN_GAP) - COLUMN_GAP / 2
            rects[place.number] = Rect(middle - width / 2, y, width, height)
        y += height + DOWN_GAP
    lines = [part for place in layers.places for part in _lines_from_above(place, rects)]
    drawn = [boxes[number].drawn(rect) for number, rect in rects.items()]
    return Layout([*lines, *drawn], layers.columns * (width + COLUMN_GAP) - COLUMN_GAP, y - DOWN_GAP)


def _one_below_the_other(shape: QueryShape, layers: Layers, width: float) -> Layout:
    """Lines that do not go to the next box run next to the boxes, in one lane per target stage."""
    straight = layers.straight()
    lanes = _lanes(layers, straight)
    left = LANE_MARGIN + LANE * max(lanes.values())
    box_width = min(width - left, WIDEST_BOX)
    gutter = wording.most_marks(shape)
    rects: dict[int, Rect] = {}
    parts: list[ET.Element] = []
    y = 0.0
    for place in layers.places:
        arrives = (f"← {wording.stages_named(place.inputs)}", wording.SHUFFLE) if place.number in lanes else ()
        sink = "" if place.feeds else shape.sink or ""
        box = StageBox(place.stage, box_width, gutter, arrives=arrives, sink=sink)
        y += 0 if not rects else DOWN_GAP if place.number in straight else ROW_GAP
        rects[place.number] = Rect(left, y, box_width, box.height)
        y += box.height
        parts.append(box.drawn(rects[place.number]))
    for place in layers.places:
        if place.number in straight:
            parts += _lines_from_above(place, rects)
        elif place.inputs:
            parts += _lines_in_lane(place, rects, left - LANE_MARGIN - LANE * (lanes[place.number] - 1))
    return Layout(parts, left + box_width, y)


def _lanes(layers: Layers, straight: set[int]) -> dict[int, int]:
    """Number the lanes: one for each stage that is not reached straight from above, shortest first."""
    position = {place.number: nth for nth, place in enumerate(layers.places)}
    spans = {
        place.number: (min(position[one] for one in place.inputs), position[place.number])
        for place in layers.places
        if place.inputs and place.number not in straight
    }
    lanes: dict[int, int] = {}
    for number, (first, last) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
        taken = {lanes[other] for other in lanes if spans[other][0] < last and first < spans[other][1]}
        lanes[number] = next(lane for lane in range(1, len(spans) + 1) if lane not in taken)
    return lanes


def _lines_from_left(target: Place, rects: dict[int, Rect]) -> list[ET.Element]:
    to = rects[target.number]
    x2, y2 = to.x - 2, to.middle_y
    parts = []
    for number in target.inputs:
        x1, y1 = rects[number].right, rects[number].middle_y
        # Lines from above and below reach the target's height before the label begins.
        join = x2 - SIDE_GAP * 0.8
        bend = (x1 + join) / 2
        parts.append(_line(f"M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {join:g} {y2:g}H{x2:g}"))
    if not parts:
        return []
    middle = x2 - SIDE_GAP * (0.49 if len(parts) == 1 else 0.42)
    words = [wording.SHUFFLE_IN_SHORT, wording.SHUFFLE_WHERE]
    label = written(words, middle, y2 - 7, "label centered", 22)
    return [_edges(parts), _head(f"M{x2:g} {y2:g}l-7 -4v8z"), label]


def _lines_from_above(target: Place, rects: dict[int, Rect]) -> list[ET.Element]:
    to = rects[target.number]
    x2, y2 = to.middle_x, to.y - 2
    parts = []
    for number in target.inputs:
        x1, y1 = rects[number].middle_x, rects[number].bottom
        join = y1 + DOWN_GAP * 0.4
        bend = (y1 + join) / 2
        parts.append(_line(f"M{x1:g} {y1:g}C{x1:g} {bend:g} {x2:g} {bend:g} {x2:g} {join:g}V{y2:g}"))
    if not parts:
        return []
    y = y2 - DOWN_GAP * 0.42
    fits = text_width(wording.SHUFFLE, SMALL) <= to.width / 2 - 12
    words = [wording.SHUFFLE] if fits else [wording.SHUFFLE_IN_SHORT, wording.SHUFFLE_WHERE]
    label = written(words, x2 + 10, y, "label", 14)
    return [_edges(parts), _head(f"M{x2:g} {y2:g}l-4 -7h8z"), label]


def _lines_in_lane(target: Place, rects: dict[int, Rect], x: float) -> list[ET.Element]:
    to = rects[target.number]
    y2 = to.y + 20
    parts = []
    for number in target.inputs:
        x1, y1 = rects[number].x, rects[number].bottom - 18
        parts.append(
            _line(
                f"M{x1:g} {y1:g}H{x + CORNER:g}Q{x:g} {y1:g} {x:g} {y1 + CORNER:g}"
                f"V{y2 - CORNER:g}Q{x:g} {y2:g} {x + CORNER:g} {y2:g}H{to.x - 2:g}"
            )
        )
    return [_edges(parts), _head(f"M{to.x - 2:g} {y2:g}l-7 -4v8z")]


def _line(path: str) -> ET.Element:
    return element("path", d=path)


def _edges(lines: Sequence[ET.Element]) -> ET.Element:
    """As one path: separate lines would look darker where they overlap."""
    return element("g", *lines, class_="edge")


def _head(path: str) -> ET.Element:
    return element("path", class_="arrow-head", d=path)
