"""The picture in characters, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from tailrace.check.description import QueryShape
from tailrace.explain import wording
from tailrace.explain.layers import Layers, Place, layers_of
from tailrace.explain.text_box import (
    BORDER,
    FAINT,
    OURS,
    OURS_STYLE,
    STATEFUL,
    STATEFUL_STYLE,
    TextBox,
    rows_of,
    wrap,
)

# A narrower picture is no help.
SMALLEST_WIDTH = 40
SMALLEST_COLUMN = 38
GAP = 2

# Lines, and the column in which each begins.
Block = list[tuple[int, Text]]


def draw_text(shape: QueryShape, width: int) -> list[Text]:
    """The stages, and below them the notes on slots and epochs, in lines of at most `width` columns."""
    width = max(width, SMALLEST_WIDTH)
    if not shape.stages:
        return [Text(wording.NOTHING_KNOWN)]
    return [*_stages(shape, width), *_legend(shape, width), Text(), *_notes(shape, width)]


def _stages(shape: QueryShape, width: int) -> list[Text]:
    layers = layers_of(shape)
    fits = layers.columns * (SMALLEST_COLUMN + GAP) - GAP <= width
    if layers.is_tree and (fits or layers.columns == 1):
        return _SideBySide(shape, layers, width).lines()
    return _one_below_the_other(shape, layers, width)


class _SideBySide:
    """Layer below layer, each stage centered below its inputs."""

    def __init__(self, shape: QueryShape, layers: Layers, width: int) -> None:
        self._layers = layers
        self._room = width
        gutter = wording.most_marks(shape)
        self._boxes = {
            place.number: TextBox(place.stage, rows_of(place.stage, writes=_writes(shape, place)), gutter)
            for place in layers.places
        }
        natural = (self._boxes[place.number].natural_width // place.columns for place in layers.places)
        self._column = min((width + GAP) // layers.columns - GAP, max(SMALLEST_COLUMN, *natural))

    def lines(self) -> list[Text]:
        lines: list[Text] = []
        for layer in range(self._layers.layers):
            places = self._layers.in_layer(layer)
            if layer:
                lines += _beside_each_other([self._connection(place, places[-1]) for place in places])
            boxes = [self._box(place) for place in places]
            height = max(map(len, boxes))
            ways_out = [(self._middle(place), Text("│" if place.feeds else "", BORDER)) for place in places]
            lines += _beside_each_other(
                [box + [way_out] * (height - len(box)) for box, way_out in zip(boxes, ways_out, strict=True)]
            )
        return lines

    def _width(self, place: Place) -> int:
        return place.columns * (self._column + GAP) - GAP

    def _middle(self, place: Place) -> int:
        return place.column * (self._column + GAP) + self._width(place) // 2

    def _box(self, place: Place) -> Block:
        box = self._boxes[place.number]
        width = min(self._width(place), max(self._column, box.natural_width))
        left = self._middle(place) - width // 2
        return [(left, line) for line in box.lines(width, feeds=bool(place.feeds))]

    def _connection(self, target: Place, last: Place) -> Block:
        middles = [self._middle(place) for place in self._layers.inputs_of(target)]
        if not middles:
            return []
        middle = self._middle(target)
        end = self._room if target is last else target.column * (self._column + GAP) + self._width(target)
        arrow = [(middle, line) for line in _arrow(end - middle)]
        return arrow if len(middles) == 1 else [(min(middles), _joined(middles, middle)), *arrow]


def _beside_each_other(blocks: Sequence[Block]) -> list[Text]:
    """Blocks from left to right. All arrows are extended to where the next layer begins."""
    height = max(map(len, blocks))
    lines = [Text() for _ in range(height)]
    for block in filter(None, blocks):
        longer = [(block[-1][0], Text("│", BORDER))] * (height - len(block)) + block
        for line, (left, part) in zip(lines, longer, strict=True):
            if part:
                line.append(" " * (left - line.cell_len)).append_text(part)
    return lines


def _arrow(room: int) -> list[Text]:
    label = wording.SHUFFLE if len(wording.SHUFFLE) + 2 <= room else wording.SHUFFLE_IN_SHORT
    return [Text.assemble(("│ ", BORDER), (label, FAINT)), Text("▼", BORDER)]


def _joined(middles: Sequence[int], target: int) -> Text:
    """`╰───┬───╯`"""
    first, last = min(middles), max(middles)
    chars = dict.fromkeys(range(first, last), "─") | dict.fromkeys(middles, "┴")
    chars |= {first: "╰", last: "╯", target: "┼" if target in middles else "┬"}
    return Text("".join(chars[column] for column in range(first, last + 1)), BORDER)


def _one_below_the_other(shape: QueryShape, layers: Layers, width: int) -> list[Text]:
    """With references instead of lines where a stage does not get its rows from the one above."""
    straight = layers.straight()
    gutter = wording.most_marks(shape)
    boxes = []
    for place in layers.places:
        elsewhere = [number for number in place.feeds if number not in straight]
        named = place.inputs and place.number not in straight
        rows = rows_of(
            place.stage,
            arrives=f"← {wording.stages_named(place.inputs)}: {wording.SHUFFLE}" if named else "",
            writes=_writes(shape, place),
            leaves=f"→ {wording.stages_named(elsewhere)}" if elsewhere else "",
        )
        boxes.append(TextBox(place.stage, rows, gutter))
    wide = min(width, max(SMALLEST_COLUMN, *(box.natural_width for box in boxes)))
    lines: list[Text] = []
    for place, box in zip(layers.places, boxes, strict=True):
        if place.number in straight:
            lines += [Text.assemble(" " * (wide // 2), line) for line in _arrow(width - wide // 2)]
        lines += box.lines(wide, feeds=any(number in straight for number in place.feeds))
    return lines


def _writes(shape: QueryShape, place: Place) -> str:
    return wording.writes_to(shape.sink) if shape.sink and not place.feeds else ""


def _legend(shape: QueryShape, width: int) -> list[Text]:
    ours, stateful = wording.marks_used(shape)
    entries = [Text.assemble((OURS, OURS_STYLE), f" {wording.OURS}")] * ours
    entries += [Text.assemble((STATEFUL, STATEFUL_STYLE), f" {wording.STATEFUL}")] * stateful
    if not entries:
        return []
    if sum(entry.cell_len + 3 for entry in entries) > width:
        return [Text(), *entries]
    return [Text(), Text("   ").join(entries)]


def _notes(shape: QueryShape, width: int) -> list[Text]:
    lines = [Text(line, "bold") for line in wrap(wording.all_at_once(shape), width)]
    lines += [Text(), *(Text(line, "bold") for line in wrap(f"{wording.epoch_heading(shape)}:", width))]
    for position, step in enumerate(wording.epoch_steps(shape), 1):
        first, *rest = wrap(step, width - 5)
        lines += [Text(f"  {position}. {first}"), *(Text(f"     {line}") for line in rest)]
    return lines + [Text(f"  {line}") for line in wrap(wording.epoch_pause(), width - 2)]
