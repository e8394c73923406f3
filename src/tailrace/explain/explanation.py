"""How a query will run, as a picture: its stages, the shuffles between them, and the steps of an epoch boundary."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

from tailrace.check.description import QueryShape
from tailrace.errors import TailraceError
from tailrace.explain import wording
from tailrace.explain.html import draw_html, inline
from tailrace.explain.svg import NAMESPACE, draw_svg
from tailrace.explain.text import draw_text

TEXT_WIDTH = 80


class Explanation:
    """The stages of a query: which run at the same time, how rows travel between them, and how many slots they hold.

    `print` it, or `save` it as a picture or a page. A notebook displays it as a picture.
    """

    def __init__(self, shape: QueryShape) -> None:
        self.shape = shape
        self._shown = wording.printable(shape)

    def text(self, width: int = TEXT_WIDTH) -> str:
        """The picture in plain characters."""
        return "\n".join(line.plain for line in draw_text(self._shown, width))

    __str__ = text

    def __repr__(self) -> str:
        return (
            f"<Explanation of {wording.counted(len(self.shape.stages), 'stage')}: {wording.sum_of_slots(self.shape)}>"
        )

    def rich(self) -> RenderableType:
        """The picture in color, as wide as the terminal."""
        return _InColors(self._shown)

    def svg(self) -> str:
        """The picture as SVG. Its colors follow the viewer's light or dark mode."""
        picture = draw_svg(self._shown)
        picture.set("xmlns", NAMESPACE)
        return ET.tostring(picture, encoding="unicode")

    def html(self) -> str:
        """The picture as a web page."""
        return draw_html(self._shown)

    def to_dict(self) -> dict[str, Any]:
        """The stages, their slots, and the steps of an epoch boundary, as plain values."""
        return {
            "stages": [
                {
                    "number": stage.number,
                    "inputs": list(stage.inputs),
                    "sources": list(stage.sources),
                    "operators": [asdict(operator) for operator in stage.operators],
                    "tasks": stage.tasks,
                    "stateful": stage.stateful,
                }
                for stage in self.shape.stages
            ],
            "sink": self.shape.sink,
            "epoch_ms": self.shape.epoch_ms,
            "slots": self.shape.slots,
            "arithmetic": self.shape.arithmetic,
            "stateful": self.shape.stateful,
            "epoch_end": list(wording.epoch_steps(self.shape)),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def save(self, path: str | Path) -> Path:
        """Save the picture in the format of the suffix: .svg, .html, .txt or .json."""
        forms: dict[str, Callable[[], str]] = {
            ".svg": self.svg,
            ".html": self.html,
            ".txt": lambda: f"{self.text()}\n",
            ".json": lambda: f"{self.to_json(indent=2)}\n",
        }
        path = Path(path)
        form = forms.get(path.suffix.lower())
        if form is None:
            raise TailraceError(
                "TAILRACE_UNKNOWN_FORMAT",
                f"the suffix of '{path.name}' does not name a picture format.",
                f"use one of {', '.join(forms)}.",
            )
        try:
            path.write_text(form(), encoding="utf-8")
        except OSError as failure:
            raise TailraceError(
                "TAILRACE_FOLDER_NOT_WRITABLE", f"cannot write {path}: {failure.strerror}", "choose another folder."
            ) from None
        return path

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{inline(draw_svg(self._shown))}</div>'


@dataclass(frozen=True)
class _InColors:
    shape: QueryShape

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        for line in draw_text(self.shape, options.max_width):
            line.no_wrap, line.overflow = True, "crop"
            yield line
