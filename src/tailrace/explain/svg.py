"""The picture as a self-contained SVG, with colors for light and dark mode."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tailrace.check.description import QueryShape
from tailrace.explain import wording
from tailrace.explain.svg_box import LINE, SIZE, SMALL, element, ours_mark, state_mark, written
from tailrace.explain.svg_epoch import draw_epoch_end
from tailrace.explain.svg_layout import Layout, lay_out
from tailrace.explain.svg_style import style
from tailrace.explain.text_width import text_width, wrap_to_width

NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH = 1120.0
LEAST_WIDTH_OF_NOTES = 560.0
MARGIN, FRAME_PADDING, FRAME_HEAD = 20.0, 18.0, 32.0
LEGEND_HEIGHT = 30.0


def draw_svg(shape: QueryShape, width: float = WIDTH) -> ET.Element:
    """The stages with a legend, and below them the notes on slots and epochs."""
    return _Sheet(shape, width).with_margin()


def draw_stages(shape: QueryShape, width: float) -> tuple[ET.Element, float]:
    """Only the stages and their legend, and their width."""
    sheet = _Sheet(shape, width, notes=False)
    return sheet.drawn(), sheet.width


class _Sheet:
    """Stacks the parts of the picture from top to bottom."""

    def __init__(self, shape: QueryShape, width: float, *, notes: bool = True) -> None:
        self._shape = shape
        self._parts: list[ET.Element] = []
        self._y = 0.0
        self.width = 0.0
        room = width - (2 * MARGIN if notes else 0)
        if shape.stages:
            self._stages(room)
            self._legend()
        if notes:
            self.width = max(self.width, min(room, LEAST_WIDTH_OF_NOTES))
            self._notes()

    def drawn(self) -> ET.Element:
        return self._svg(self.width, self._y, self._parts)

    def with_margin(self) -> ET.Element:
        """With a background of its own, because the one behind it is unknown."""
        width, height = self.width + 2 * MARGIN, self._y + 2 * MARGIN
        ground = element("rect", class_="ground", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=12)
        moved = element("g", *self._parts, transform=f"translate({MARGIN:g} {MARGIN:g})")
        return self._svg(width, height, [ground, moved])

    def _svg(self, width: float, height: float, parts: list[ET.Element]) -> ET.Element:
        words = wording.all_at_once(self._shape) if self._shape.stages else wording.NOTHING_KNOWN
        return element(
            "svg",
            element("style", text=style()),
            *parts,
            class_="tailrace-stages",
            viewBox=f"0 0 {width:g} {height:g}",
            width=width,
            height=height,
            role="graphics-document",
            aria_label=words,
        )

    def _stages(self, width: float) -> None:
        """Stages that run at the same time share a frame."""
        if len(self._shape.stages) == 1:
            self._add(lay_out(self._shape, width - 2), 1, 1)
            self.width += 1
            return
        layout = lay_out(self._shape, width - 2 * FRAME_PADDING)
        self._add(layout, FRAME_PADDING, FRAME_HEAD)
        self.width += FRAME_PADDING
        self._y += FRAME_PADDING
        frame = element("rect", class_="frame", x=0.5, y=0.5, width=self.width - 1, height=self._y - 1, rx=12)
        self._parts += [frame, *self._frame_head(layout.width)]

    def _frame_head(self, width: float) -> list[ET.Element]:
        words = "all at the same time"
        parts = [element("text", text=words, class_="label", x=FRAME_PADDING, y=21)]
        for slots in (wording.slots_in_all(self._shape), wording.sum_of_slots(self._shape)):
            if text_width(words + slots, SMALL) + 16 < width:
                x = FRAME_PADDING + width
                return [*parts, element("text", text=slots, class_="label", text_anchor="end", x=x, y=21)]
        return parts

    def _add(self, layout: Layout, x: float, y: float) -> None:
        self._parts.append(element("g", *layout.parts, transform=f"translate({x:g} {y:g})"))
        self.width = x + layout.width
        self._y = y + layout.height

    def _legend(self) -> None:
        ours, stateful = wording.marks_used(self._shape)
        if not (ours or stateful):
            return
        x, y = 8.0, self._y + LEGEND_HEIGHT - 8
        for used, mark, words in ((ours, ours_mark, wording.OURS), (stateful, state_mark, wording.STATEFUL)):
            if used:
                self._parts += [mark(x, y - 4), element("text", text=words, class_="label", x=x + 11, y=y)]
                x += text_width(words, SMALL) + 36
        self._y += LEGEND_HEIGHT

    def _notes(self) -> None:
        if not self._shape.stages:
            self._paragraph(wording.NOTHING_KNOWN)
            return
        self._y += 14
        self._paragraph(wording.all_at_once(self._shape))
        self._y += 12
        self._paragraph(wording.epoch_heading(self._shape))
        self._y += 8
        parts, height = draw_epoch_end(self._shape, self.width)
        self._parts.append(element("g", *parts, transform=f"translate(0 {self._y:g})"))
        self._y += height

    def _paragraph(self, text: str) -> None:
        lines = wrap_to_width(text, SIZE, self.width, bold=True)
        self._parts.append(written(lines, 0, self._y + 13, "strong"))
        self._y += LINE * len(lines)
