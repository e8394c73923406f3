"""A stage as a box in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tailrace.contract.query_description import Operator, Stage
from tailrace.explain import wording
from tailrace.explain.text_width import code_width, text_width, wrap_to_width

SIZE, SMALL = 13.0, 11.0
PADDING = 14.0
LINE = 19.0
MARK = 13.0

SLOT, SLOT_PITCH = 8.0, 11.0
MOST_SLOTS = 64
UNKNOWN_SLOTS = 4


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle_x(self) -> float:
        return self.x + self.width / 2

    @property
    def middle_y(self) -> float:
        return self.y + self.height / 2


def element(name: str, *children: ET.Element, text: str = "", **attributes: str | float) -> ET.Element:
    """`text_anchor=` becomes `text-anchor=`, `class_=` becomes `class=`."""
    made = ET.Element(
        name,
        {
            key.rstrip("_").replace("_", "-"): value if isinstance(value, str) else f"{value:g}"
            for key, value in attributes.items()
        },
    )
    made.text = text or None
    made.extend(children)
    return made


def written(lines: Sequence[str], x: float, y: float, class_: str, pitch: float = LINE) -> ET.Element:
    """Lines of one text, the first on the baseline y."""
    drawn = [element("text", text=line, x=x, y=y + nth * pitch) for nth, line in enumerate(lines)]
    return element("g", *drawn, class_=class_)


class StageBox:
    """One stage in a given width; the height follows from its content."""

    def __init__(self, stage: Stage, width: float, gutter: int, *, arrives: Sequence[str] = (), sink: str = "") -> None:
        self._stage = stage
        self._width = width
        self._indent = PADDING + max(gutter, 1) * MARK + 3
        self._parts: list[ET.Element] = []
        self._y = PADDING
        self._title()
        self._slots()
        for words in arrives:
            self._small(words)
        for source in stage.sources:
            self._end(wording.reads(source))
        for operator in stage.operators:
            self._operator(operator)
        if sink:
            self._y += 5
            self._end(wording.writes_to(sink))
        self.height = self._y + PADDING - 4

    def drawn(self, at: Rect) -> ET.Element:
        box = element("rect", class_="box", width=at.width, height=at.height, rx=10)
        return element("g", box, *self._parts, class_="stage", transform=f"translate({at.x:g} {at.y:g})")

    def _title(self) -> None:
        name = element("tspan", text=wording.name(self._stage), class_="strong")
        name.tail = f" · {wording.slots(self._stage)}"
        self._parts.append(element("text", name, x=PADDING, y=self._y + 11, class_="title"))
        self._y += 20

    def _slots(self) -> None:
        """One small square per slot, up to the number that a reader can take in at a glance."""
        tasks = self._stage.tasks
        shown = UNKNOWN_SLOTS if tasks is None else min(tasks, MOST_SLOTS)
        in_row = int((self._width - 2 * PADDING + SLOT_PITCH - SLOT) // SLOT_PITCH)
        for slot in range(shown):
            row, column = divmod(slot, in_row)
            self._parts.append(
                element(
                    "rect",
                    class_="slot unknown" if tasks is None else "slot",
                    x=PADDING + column * SLOT_PITCH,
                    y=self._y + row * SLOT_PITCH,
                    width=SLOT,
                    height=SLOT,
                    rx=2,
                )
            )
        self._y += -(-shown // in_row) * SLOT_PITCH + 8
        if tasks is not None and tasks > shown:
            self._small(f"and {tasks - shown:,} more")

    def _small(self, text: str) -> None:
        lines = wrap_to_width(text, SMALL, self._width - 2 * PADDING)
        self._parts.append(written(lines, PADDING, self._y + 10, "label", 15))
        self._y += 15 * len(lines) + 3

    def _end(self, words: str) -> None:
        """A source or a sink, set off from the operators."""
        room = self._width - 2 * PADDING - 24
        lines = wrap_to_width(words, SIZE, room, bold=True)
        width = 24 + min(room, max(text_width(line, SIZE, bold=True) for line in lines))
        height = LINE * len(lines) + 7
        pill = element("rect", class_="end", x=PADDING, y=self._y, width=width, height=height, rx=13)
        self._parts += [pill, written(lines, PADDING + width / 2, self._y + 17, "end-name centered")]
        self._y += height + 6

    def _operator(self, operator: Operator) -> None:
        room = self._width - self._indent - PADDING
        lines = wrap_to_width(operator.name, SIZE, room)
        self._marks(operator)
        marked = " ours" if operator.ours else " state" if operator.stateful else ""
        self._parts.append(written(lines, self._indent, self._y + 14, f"operator{marked}"))
        self._y += LINE * len(lines)
        if operator.line:
            fits = text_width(lines[-1], SIZE) + 12 + code_width(operator.line, SMALL) <= room
            x, anchor = (self._width - PADDING, "end") if fits else (self._indent, "start")
            self._y += 0 if fits else 16
            self._parts.append(
                element(
                    "text",
                    text=_shortened(operator.line, room),
                    x=x,
                    y=self._y - 5,
                    text_anchor=anchor,
                    class_="line",
                )
            )
        self._y += 2

    def _marks(self, operator: Operator) -> None:
        """Draw the marks right before the operator's name."""
        x, y = self._indent - 3 - MARK / 2, self._y + 9.5
        if operator.stateful:
            self._parts.append(state_mark(x, y))
            x -= MARK
        if operator.ours:
            self._parts.append(ours_mark(x, y))
        if not (operator.ours or operator.stateful):
            self._parts.append(element("circle", class_="plain-mark", cx=x, cy=y, r=2.5))


def ours_mark(x: float, y: float) -> ET.Element:
    return element("path", class_="ours-mark", d=f"M{x:g} {y - 5.5:g}l5.5 5.5l-5.5 5.5l-5.5 -5.5z")


def state_mark(x: float, y: float) -> ET.Element:
    return element("circle", class_="state-mark", cx=x, cy=y, r=4.2)


def _shortened(line: str, room: float) -> str:
    # Keep the end of a long path: it says most.
    while code_width(line, SMALL) > room:
        line = "…" + line.lstrip("…")[1:]
    return line
