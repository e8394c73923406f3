"""The terminal: progress and messages on standard error, with color only for people."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Those that move the cursor, change colors or titles, or turn the direction of the text; not tab and line feed.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible_controls(text: str) -> str:
    """Show control characters as `\\x1b`: a record that an error quotes must not steer the terminal."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class SafeConsole(Console):
    """A console that sends no control characters but its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text
            yield segment if segment.control or text.isprintable() else segment._replace(text=_safe(text))


def _safe(text: str) -> str:
    # A lone carriage return would let the next words overwrite those before.
    return visible_controls(text).replace("\r", "\\r")


# Standard output is for results that a script may read; everything else goes here.
console = SafeConsole(stderr=True, highlight=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something slow is in progress: a spinner on a terminal, or else one line when it is done."""
    begun = time.monotonic()
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        console.print(f"{what} …", soft_wrap=True)
        yield
    console.print(f"[green]✓[/] {what} [dim]({time.monotonic() - begun:.1f} s)[/]", soft_wrap=True)
