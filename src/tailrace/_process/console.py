"""The terminal: progress and messages on standard error, with colour only for people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

# Standard output is for results that a script may read; everything else goes here.
console = Console(stderr=True, highlight=False)


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
