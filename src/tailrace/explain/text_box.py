"""A stage as a box of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

from tailrace.contract.query_description import Operator, Stage
from tailrace.explain import wording

OURS, STATEFUL = "◆", "●"
BORDER, FAINT, OURS_STYLE, STATEFUL_STYLE = "dim", "dim", "cyan", "yellow"

# The border and a blank on either side.
FRAME = 4


@dataclass(frozen=True)
class Row:
    """One entry of a box: its marks, its text, and next to it the line of code it comes from."""

    text: str
    style: str = ""
    marks: tuple[tuple[str, str], ...] = ()
    aside: str = ""


def rows_of(stage: Stage, *, arrives: str = "", writes: str = "", leaves: str = "") -> list[Row]:
    """The entries of a stage, including its inputs and outputs where no line shows them."""
    rows = [
        Row(arrives, FAINT),
        *(Row(wording.reads(source), "bold") for source in stage.sources),
        *map(_operator_row, stage.operators),
        Row(writes, "bold"),
        Row(leaves, FAINT),
    ]
    return [row for row in rows if row.text]


def _operator_row(operator: Operator) -> Row:
    marks = [(OURS, OURS_STYLE)] * operator.ours + [(STATEFUL, STATEFUL_STYLE)] * operator.stateful
    style = marks[0][1] if marks else ""
    return Row(operator.name, style, tuple(marks), operator.line or "")


@dataclass(frozen=True)
class TextBox:
    stage: Stage
    rows: Sequence[Row]
    gutter: int
    """The number of marks that fit before a row's text."""

    @property
    def natural_width(self) -> int:
        """The width at which nothing wraps."""
        texts = [cell_len(row.text) + (2 + cell_len(row.aside) if row.aside else 0) for row in self.rows]
        return FRAME + max(self._title().cell_len, self._indent + max(texts, default=0))

    def lines(self, width: int, *, feeds: bool) -> list[Text]:
        """The box, `width` columns wide, with a connector below if it feeds another stage."""
        title = self._title()
        top = Text.assemble(("╭─", BORDER), title, ("─" * (width - 3 - title.cell_len) + "╮", BORDER))
        bottom = "─" * (width - 2)
        if feeds:
            middle = width // 2 - 1
            bottom = bottom[:middle] + "┬" + bottom[middle + 1 :]
        body = [line for row in self.rows for line in self._row(row, width - FRAME)]
        framed = [Text.assemble(("│ ", BORDER), _padded(line, width - FRAME), (" │", BORDER)) for line in body]
        return [top, *framed, Text(f"╰{bottom}╯", BORDER)]

    def _title(self) -> Text:
        return Text.assemble(" ", (wording.name(self.stage), "bold"), f" · {wording.slots(self.stage)} ")

    @property
    def _indent(self) -> int:
        return self.gutter + 1 if self.gutter else 0

    def _row(self, row: Row, width: int) -> list[Text]:
        first, *rest = wrap(row.text, width - self._indent)
        lines = [Text.assemble(_padded(Text.assemble(*row.marks), self._indent), (first, row.style))]
        lines += [Text.assemble(" " * self._indent, (part, row.style)) for part in rest]
        if row.aside:
            if lines[-1].cell_len + 2 + cell_len(row.aside) > width:
                lines.append(Text())
            lines[-1] = _with_aside(lines[-1], row.aside, width)
        return lines


def wrap(text: str, width: int) -> list[str]:
    """Break between words, and within a word only if it does not fit on a line."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop_cells(word, width)
    return [line for line in lines if line] or [""]


def _padded(line: Text, width: int) -> Text:
    return Text.assemble(line, " " * (width - line.cell_len))


def _with_aside(line: Text, aside: str, width: int) -> Text:
    # Keep the end of a long path: it says most.
    while cell_len(aside) > width:
        aside = "…" + aside.lstrip("…")[1:]
    return Text.assemble(_padded(line, width - cell_len(aside)), (aside, FAINT))
